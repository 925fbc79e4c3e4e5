import { spawnSync } from "node:child_process";
import { absent } from "./absent.mjs";

/** For `test(name, { skip })`: false where `python3` is 3.9 or newer, else why not. Where CI=true its absence is an error. */
export const skipWithoutPython = isThere()
  ? false
  : absent("Python 3.9 or newer is not installed: no model in Python is tested");

function isThere() {
  return spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 9))"]).status === 0;
}
