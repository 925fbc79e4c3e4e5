import { execFileSync } from "node:child_process";
import { root } from "./files.mjs";

/** What `sheaf … --help` prints, read from the built command. */
export function helpOf(...words) {
  const entry = `${root}/packages/sheaf-server/bin/sheaf.js`;
  return execFileSync(process.execPath, [entry, ...words, "--help"], { encoding: "utf8" });
}

/** The names of the commands in the overview. */
export function commandNames(overview = helpOf()) {
  return listed(overview, "Commands")
    .map(({ term }) => term.split(" ", 1)[0])
    .filter((name) => name !== "help");
}

/**
 * The flags of a command's help, as written with their placeholder (`--rate <n>`), each with its default; undefined where
 * it has none, or where prose says what it is. Flags that stand for a setting (`MAX_BATCH_SIZE; default 32`) are apart, in
 * `settings`: docs/reference/environment.md has them.
 */
export function flagsOf(help) {
  const flags = new Map();
  const settings = new Map();
  for (const { term, description } of listed(help, "[A-Z][a-z ]+")) {
    if (!term.startsWith("-")) continue;
    const long = /--.*$/.exec(term)[0];
    const [, variable] = /\(([A-Z_]+); default [^)]*\)$/.exec(description) ?? [];
    const [, shown] = /\(default: "?([^\s")]+)"?\)$/.exec(description) ?? [];
    if (long === "--help") continue;
    if (variable !== undefined) settings.set(long.split(" ")[0], variable);
    else flags.set(long, shown === "none" ? undefined : shown);
  }
  return { flags, settings };
}

/** The entries of the lists of a help text whose title matches, their wrapped lines joined. */
function listed(help, title) {
  const lists = `${help}\n`.matchAll(new RegExp(`^${title}:\\n((?: .*\\n|\\n(?= ))*)`, "gm"));
  const joined = Array.from(lists, ([, list]) => list)
    .join("")
    .replaceAll(/\n {3,}/g, " ")
    .replaceAll(/\s*\n/g, "\n");
  return joined
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => /^ {2}(\S.*?)(?: {2,}(.*))?$/.exec(line))
    .map(([, term, description = ""]) => ({ term, description: description.replaceAll(/ {2,}/g, " ") }));
}
