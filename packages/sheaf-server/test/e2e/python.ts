import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** For `test(name, { skip })`: false where Python 3.9 is, else why not. On CI its absence is a failure. */
export const skipWithoutPython: string | false = isThere() ? false : absent();

function isThere(): boolean {
  return spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 9))"]).status === 0;
}

function absent(): string {
  const message = "Python 3.9 or newer is not installed: no Python model was served";
  if (process.env["CI"] === "true") throw new Error(message);
  console.error(`SKIPPED: ${message}`);
  return message;
}

/** A Python model of fixtures/. */
export const pythonModel = (name: string): string =>
  fileURLToPath(new URL(`../../test/e2e/fixtures/${name}.py`, import.meta.url));
