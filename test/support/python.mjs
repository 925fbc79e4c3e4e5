import { spawnSync } from "node:child_process";

/** For `test(name, { skip })`: false where `python3` is 3.9 or newer, else why not. Where CI=true its absence is an error. */
export const skipWithoutPython = isThere() ? false : absent();

function isThere() {
  return spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 9))"]).status === 0;
}

function absent() {
  const message = "Python 3.9 or newer is not installed: no model in Python is tested";
  if (process.env.CI === "true") throw new Error(message);
  console.error(`SKIPPED: ${message}`);
  return message;
}
