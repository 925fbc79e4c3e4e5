import { execFile } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { promisify } from "node:util";
import { filesBelow, root } from "./files.mjs";
import { importsOf } from "./imports.mjs";
import { userEnvironment } from "./tarballs.mjs";

const read = (path) => readFileSync(`${root}/${path}`, "utf8");
const dependenciesOf = (path) => Object.keys(JSON.parse(read(path)).dependencies ?? {});

/** Every folder below examples/, with its package.json (undefined where it has none). */
export function examples() {
  return readdirSync(`${root}/examples`, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== "node_modules")
    .map(({ name }) => {
      const path = `examples/${name}/package.json`;
      return { name, manifest: existsSync(`${root}/${path}`) ? JSON.parse(read(path)) : undefined };
    });
}

/** Whether `npm ci` at the root installs all that an example needs; what Python or Go needs it does not. */
export function isLight({ name, manifest }) {
  if (existsSync(`${root}/examples/${name}/requirements.txt`)) return false;
  if (existsSync(`${root}/examples/${name}/go.mod`)) return false;
  const installed = new Set(["sheaf", "sheaf-server", ...dependenciesOf("packages/sheaf-server/package.json")]);
  return Object.keys(manifest?.dependencies ?? {}).every((name) => installed.has(name));
}

/** What is wrong with an example's package.json, each as a sentence; it must name the packages that its files import. */
export function complaintsOnManifest({ name, manifest }) {
  if (manifest === undefined) return [`examples/${name} has no package.json`];
  const complaints = [];
  if (manifest.scripts?.start === undefined) complaints.push(`examples/${name}/package.json has no "start" script`);
  const files = filesBelow(`examples/${name}`, "").filter((file) => /\.m?[jt]sx?$/.test(file) && !/\/(node_modules|dist)\//.test(file)); // prettier-ignore
  const imported = new Set(
    files
      .flatMap((file) => importsOf(readFileSync(file, "utf8")))
      .filter((specifier) => !/^(?:\.|node:|https?:)/.test(specifier))
      .map((specifier) => specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/")),
  );
  const named = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies });
  for (const needed of imported)
    if (!named.includes(needed)) complaints.push(`examples/${name}/package.json does not name ${needed}`);
  return complaints;
}

/** An example takes seconds; on a crowded machine many times as long. This ends one that hangs. */
const longestMs = 300_000;

/** Runs an example as its user would, with `own` variables. Rejects with its output where it fails or does not end. */
export async function runExample({ name, manifest }, own = {}) {
  const script = manifest.scripts.test === undefined ? "start" : "test";
  const options = { cwd: `${root}/examples/${name}`, env: { ...userEnvironment(), ...own }, timeout: longestMs };
  try {
    await promisify(execFile)("npm", ["run", "--loglevel=error", script], options);
  } catch (error) {
    const how = error.killed ? `did not end within ${longestMs / 1000} s` : `ended with ${error.code}`;
    throw new Error(`examples/${name} ${how}:\n${error.stdout}${error.stderr}`, { cause: error });
  }
}
