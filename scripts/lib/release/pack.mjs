import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { userEnvironment } from "../tarballs.mjs";
import { attw, attwCommand, installTools } from "../tools.mjs";
import { writeChecksums, writeSbom } from "./artifacts.mjs";
import { packageNames } from "./metadata.mjs";
import { step } from "./step.mjs";

/**
 * Checks a checkout that is installed, packs it into a folder and checks what npm would publish: tarballs, an SBOM of each,
 * and their checksums.
 */
export function packRelease(checkout, version, folder, temporary) {
  const run = runIn(checkout);
  step("static checks, publint among them", () => run("npm", "run", "check"));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const workspaces = packageNames.flatMap((name) => ["-w", name]);
  step("npm pack", () => run("npm", "pack", "--pack-destination", folder, ...workspaces));
  const tarballs = packageNames.map((name) => join(folder, `${name}-${version}.tgz`));
  for (const tarball of tarballs)
    console.log(`  ${basename(tarball)}: ${(statSync(tarball).size / 1000).toFixed(0)} kB`);

  const tool = step("are-the-types-wrong installed", () => installTools(join(temporary, "tools"), [attw]));
  for (const [index, tarball] of tarballs.entries()) {
    step(`are-the-types-wrong: ${basename(tarball)}`, () => run(...attwCommand(tool, tarball)));
    const path = tarball.replace(/tgz$/, "cdx.json");
    const count = step(`SBOM: ${basename(path)}`, () =>
      writeSbom(tarball, tarballs.slice(0, index), path, join(temporary, `sbom-${index}`)),
    );
    console.log(`  CycloneDX, ${count} components`);
    step(`npm publish --dry-run: ${basename(tarball)}`, () => checkPublication(tarball, run));
  }
  step("SHA256SUMS", () => writeChecksums(readdirSync(folder).map((name) => join(folder, name)), folder)); // prettier-ignore
}

/** What npm would send: the settings that a workflow needs, and nothing that npm has to correct. */
function checkPublication(tarball, run) {
  const manifest = JSON.parse(execFileSync("tar", ["xzOf", tarball, "package/package.json"], { encoding: "utf8" }));
  const { access, provenance } = manifest.publishConfig;
  if (access !== "public" || provenance !== true)
    throw new Error(`${basename(tarball)} is not set to be published with provenance`);
  run("npm", "publish", "--dry-run", "--provenance=false", tarball);
}

/** Runs a command in a folder as a user's shell would, for ten minutes at most; a failure carries its output. */
export const runIn =
  (cwd) =>
  (command, ...parameters) =>
    execFileSync(command, parameters, {
      cwd,
      env: userEnvironment(),
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 600_000,
      maxBuffer: 2 ** 26,
    });
