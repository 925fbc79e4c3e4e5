import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "./files.mjs";

const execute = promisify(execFile);

/**
 * The environment of a user's shell: what `npm test` and npm's own configuration add is taken away, so that an install
 * below behaves as it would for a user. onnxruntime-node's step for CUDA is skipped as the README says.
 */
export function userEnvironment() {
  const foreign = /^(npm_|NODE_TEST_CONTEXT$|NODE_OPTIONS$|INIT_CWD$)/i;
  const entries = Object.entries(process.env).filter(([name]) => !foreign.test(name));
  return { ...Object.fromEntries(entries), ONNXRUNTIME_NODE_INSTALL: "skip" };
}

/** Packs workspace packages as they would be published; returns each tarball's path and the files in it. Needs a build. */
export async function packTarballs(names, folder) {
  mkdirSync(folder, { recursive: true });
  const parameters = ["pack", "--json", "--pack-destination", folder, ...names.flatMap((name) => ["-w", name])];
  const { stdout } = await execute("npm", parameters, { cwd: root, env: userEnvironment() });
  return Object.values(JSON.parse(stdout)).map(({ filename, files }) => ({
    path: join(folder, filename),
    files: files.map(({ path }) => path),
  }));
}

/**
 * Makes an empty project in a folder and installs tarballs (as packTarballs returns them) into it. Returns what npm said
 * on stderr: its warnings.
 */
export async function installTarballs(tarballs, folder) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "user", private: true }));
  const { stderr } = await execute("npm", ["install", "--no-audit", "--no-fund", ...tarballs.map(({ path }) => path)], {
    cwd: folder,
    env: userEnvironment(),
  });
  return stderr;
}
