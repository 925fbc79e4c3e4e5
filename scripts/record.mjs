// `node scripts/record.mjs [floors] [metadata]`: writes down, after a build, what tests compare with; review the diff it makes.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { root } from "./lib/files.mjs";
import { drawnPlan } from "./lib/floors.mjs";
import { packageNames, readMetadata, withMetadata } from "./lib/release/metadata.mjs";

/** The files that each record writes, with their contents. */
const records = {
  floors: () => ({ "ARCHITECTURE.md": withFloorPlan(readFileSync(`${root}/ARCHITECTURE.md`, "utf8")) }),
  metadata: () => Object.fromEntries(packageNames.map(manifestWithMetadata)),
};

const names = process.argv.slice(2);
const unknown = names.filter((name) => !Object.hasOwn(records, name));
if (unknown.length > 0) {
  console.error(`Unknown record ${unknown.join(", ")}; there is: ${Object.keys(records).join(", ")}`);
  process.exit(2);
}
const build = spawnSync(process.execPath, ["scripts/build.mjs"], { cwd: root, stdio: "inherit" });
if (build.status !== 0) process.exit(build.status ?? 1);
for (const name of names.length > 0 ? names : Object.keys(records)) {
  for (const [file, content] of Object.entries(await records[name]())) {
    writeFileSync(`${root}/${file}`, content);
    console.log(file);
  }
}

function manifestWithMetadata(name) {
  const path = `packages/${name}/package.json`;
  return [path, asJson(withMetadata(JSON.parse(readFileSync(`${root}/${path}`, "utf8")), readMetadata()))];
}

function asJson(value) {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** The document with the code block that follows the heading "Floor plan" drawn again. */
function withFloorPlan(text) {
  return text.replace(/(?<=^## Floor plan$[^]*?^```text\n)[^]*?(?=\n```$)/m, drawnPlan());
}
