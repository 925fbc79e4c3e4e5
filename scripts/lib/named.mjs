import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { root } from "./files.mjs";

/**
 * `npm run FOLDER -- NAME [option …]`: builds, then runs FOLDER/NAME.mjs with the options. Without a name, or with one
 * that does not exist, lists the names there are. Returns the exit status.
 */
export function runNamed(folder, [name, ...parameters]) {
  const names = namesIn(folder);
  if (name === undefined || !names.includes(name)) {
    if (name !== undefined) console.error(`There is no ${folder}/${name}.mjs.`);
    console.error(`npm run ${folder} -- NAME [option …], where NAME is one of: ${names.join(", ") || "(none yet)"}`);
    return 2;
  }
  for (const command of [["scripts/build.mjs"], [`${folder}/${name}.mjs`, ...parameters]]) {
    const { status, signal } = spawnSync(process.execPath, command, { cwd: root, stdio: "inherit" });
    if (signal !== null) console.error(`node ${command.join(" ")} was ended by ${signal}.`);
    if (status !== 0) return status ?? 1;
  }
  return 0;
}

/** The scripts of a folder that say in their first lines how they are called; the others are parts of these. */
function namesIn(folder) {
  if (!existsSync(`${root}/${folder}`)) return [];
  return readdirSync(`${root}/${folder}`)
    .filter((file) => file.endsWith(".mjs"))
    .map((file) => file.slice(0, -".mjs".length))
    .filter((name) => readFileSync(`${root}/${folder}/${name}.mjs`, "utf8").includes(`npm run ${folder} -- ${name}`))
    .sort();
}
