import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { userEnvironment } from "../tarballs.mjs";

/**
 * The CycloneDX document of a tarball: it, and what npm installs with it today. `others` are tarballs of ours that it
 * depends on and no registry has yet. Returns how many components it lists.
 */
export function writeSbom(tarball, others, path, temporary) {
  const options = { cwd: join(temporary, "package"), env: userEnvironment(), maxBuffer: 2 ** 26, encoding: "utf8" };
  mkdirSync(temporary, { recursive: true });
  execFileSync("tar", ["xzf", tarball], { cwd: temporary });
  const manifest = join(options.cwd, "package.json");
  // npm sbom --omit=dev also leaves out what both need: here nothing but production is installed in the first place.
  const { devDependencies: _, peerDependencies: __, peerDependenciesMeta: ___, ...production } = readJson(manifest);
  writeFileSync(manifest, JSON.stringify(production));
  const quiet = { ...options, stdio: ["ignore", "pipe", "pipe"] };
  execFileSync("npm", ["install", "--package-lock-only", "--ignore-scripts", "--no-audit", ...others], quiet);
  const type = production.bin === undefined ? "library" : "application";
  const format = ["--package-lock-only", "--sbom-format=cyclonedx", `--sbom-type=${type}`];
  const sbom = JSON.parse(execFileSync("npm", ["sbom", ...format], quiet));
  // npm names the component after its folder.
  sbom.metadata.component.name = production.name;
  writeFileSync(path, `${JSON.stringify(sbom, null, 2)}\n`);
  const installed = Object.entries(readJson(join(options.cwd, "package-lock.json")).packages)
    .filter(([folder]) => folder !== "")
    .map(([folder, { version }]) => `${folder.split("node_modules/").at(-1)}@${version}`);
  const listed = new Set(sbom.components.map((component) => component["bom-ref"]));
  const missing = installed.filter((name) => !listed.has(name));
  if (missing.length > 0) throw new Error(`${basename(path)} lacks ${missing.join(", ")}`);
  return listed.size;
}

/** Writes SHA256SUMS beside the files, as `sha256sum --check` reads it. */
export function writeChecksums(files, folder) {
  const sums = files.map(
    (file) => `${createHash("sha256").update(readFileSync(file)).digest("hex")}  ${basename(file)}\n`,
  );
  writeFileSync(join(folder, "SHA256SUMS"), sums.join(""));
}

const readJson = (path) => JSON.parse(readFileSync(path, "utf8"));
