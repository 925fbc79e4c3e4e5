import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { dirname } from "node:path";
import { root } from "./files.mjs";

/**
 * `npm run FOLDER -- NAME [option …]`: builds, then runs FOLDER/NAME.mjs with the options. With a name that does not exist,
 * or without one, lists the names there are. Returns the exit status.
 */
export function runNamed(folder, [name, ...parameters]) {
  const names = namesIn(folder);
  if (name === undefined || !names.includes(name)) {
    if (name !== undefined) console.error(`There is no ${pathOf(folder, name)}.`);
    console.error(`npm run ${folder} -- NAME [option …], where NAME is one of: ${names.join(", ") || "(none yet)"}`);
    return 2;
  }
  return node("scripts/build.mjs") || node(pathOf(folder, name), ...parameters);
}

/** Runs all of these scripts of a folder in turn, says how long each took, and returns 1 if one of them failed. */
export function runAll(folder, names) {
  if (names.length > 0 && node("scripts/build.mjs") !== 0) return 1;
  const outcomes = names.map((name) => {
    console.log(`\n== npm run ${folder} -- ${name}`);
    const startedAtMs = performance.now();
    const status = node(pathOf(folder, name));
    return { name, status, tookS: Math.round((performance.now() - startedAtMs) / 1000) };
  });
  for (const { name, status, tookS } of outcomes) console.log(`${status === 0 ? "✔" : "✖"} ${name} (${tookS} s)`);
  return outcomes.some(({ status }) => status !== 0) ? 1 : 0;
}

/** Whether a script says in its first lines that it is run with every release. */
export function isForReleases(folder, name) {
  return textOf(folder, name).includes("part of `npm run test:release`");
}

/** The scripts of a folder that say in their first lines how they are called; the others are parts of these. */
export function namesIn(folder) {
  return readdirSync(dirname(`${root}/${pathOf(folder, "")}`))
    .filter((file) => file.endsWith(".mjs"))
    .map((file) => file.slice(0, -".mjs".length))
    .filter((name) => textOf(folder, name).includes(`npm run ${folder} -- ${name}`))
    .sort();
}

/** From the repository's root. */
export const pathOf = (folder, name) => `${folder === "prove" ? "scripts/" : ""}${folder}/${name}.mjs`;
const textOf = (folder, name) => readFileSync(`${root}/${pathOf(folder, name)}`, "utf8");

function node(...command) {
  const { status, signal } = spawnSync(process.execPath, command, { cwd: root, stdio: "inherit" });
  if (signal !== null) console.error(`node ${command.join(" ")} was ended by ${signal}.`);
  return status ?? 1;
}
