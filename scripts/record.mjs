// `node scripts/record.mjs [exports] [size]`: writes down, after a build, what tests compare with; review the diff it makes.
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { root } from "./lib/files.mjs";
import { declaredExports } from "./lib/public-exports.mjs";
import { coreSizes } from "./lib/size.mjs";

const records = {
  exports: () => ["public-exports.json", declaredExports()],
  size: async () => ["size.json", await coreSizes()],
};

const names = process.argv.slice(2);
const unknown = names.filter((name) => !Object.hasOwn(records, name));
if (unknown.length > 0) {
  console.error(`Unknown record ${unknown.join(", ")}; there is: ${Object.keys(records).join(", ")}`);
  process.exit(2);
}
const build = spawnSync(process.execPath, ["scripts/build.mjs"], { cwd: root, stdio: "inherit" });
if (build.status !== 0) process.exit(build.status ?? 1);
mkdirSync(`${root}/test/fixtures`, { recursive: true });
for (const name of names.length > 0 ? names : Object.keys(records)) {
  const [file, content] = await records[name]();
  writeFileSync(`${root}/test/fixtures/${file}`, `${JSON.stringify(content, null, 2)}\n`);
  console.log(`test/fixtures/${file}`);
}
