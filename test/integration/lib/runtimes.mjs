import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { absent } from "../../support/absent.mjs";

/** Other runtimes of JavaScript, as npm carries them: the command line before a script. */
const commands = {
  Bun: [binary("@oven/bun-linux-x64/bin/bun")],
  Deno: [binary("@deno/linux-x64-glibc/deno"), "run", "--allow-all", "--node-modules-dir=manual"],
};

/** `{ command, skip }`: skip is for `test(name, { skip })`. On CI an absent runtime is a failure. */
export function runtime(name) {
  const command = commands[name];
  if (existsSync(command[0])) return { command, skip: false };
  const message = `${name} is not installed: npm has it for Linux on x64, as an optional dependency`;
  return { command, skip: absent(message) };
}

function binary(path) {
  return fileURLToPath(new URL(`../node_modules/${path}`, import.meta.url));
}
