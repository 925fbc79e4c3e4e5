// `npm run new -- policy NAME | route NAME | adapter NAME | metric NAME`: lays out the files of a first change, with a test that fails
// until the change is written, and prints what is left to do.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { format, getFileInfo, resolveConfig } from "prettier";
import { root } from "./lib/files.mjs";
import { adapter } from "./templates/adapter.mjs";
import { metric } from "./templates/metric.mjs";
import { policy } from "./templates/policy.mjs";
import { route } from "./templates/route.mjs";

/** Each gives `{ created: { path: text }, changed: { path: change(text) }, next: [sentence] }`. */
const kinds = { policy, route, adapter, metric };

const [kind, name, ...rest] = process.argv.slice(2);
if (!Object.hasOwn(kinds, kind ?? "") || !/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name ?? "") || rest.length > 0) {
  console.error(`npm run new -- ${Object.keys(kinds).join(" | ")} NAME, where NAME is like even-seconds`);
  process.exit(2);
}
const camel = name.replaceAll(/-(\w)/g, (_, letter) => letter.toUpperCase());
const { created, changed, next } = kinds[kind]({ name, camel, pascal: camel[0].toUpperCase() + camel.slice(1) });

const present = Object.keys(created).filter((path) => existsSync(join(root, path)));
if (present.length > 0) {
  console.error(`There is ${present.join(", ")} already.`);
  process.exit(1);
}
// All texts are made before the first is written: a place that is not found leaves nothing half done.
const texts = { ...created };
for (const [path, change] of Object.entries(changed)) {
  const before = readFileSync(join(root, path), "utf8");
  texts[path] = change(before);
  if (texts[path] === before)
    throw new Error(`${path} has changed: scripts/templates/${kind}.mjs finds no place in it`);
}
for (const [path, text] of Object.entries(texts)) {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  const { inferredParser: parser } = await getFileInfo(file);
  writeFileSync(file, await format(text, { ...(await resolveConfig(file)), parser }));
  console.log(`${path in created ? "new    " : "changed"} ${path}`);
}
console.log(`\nNext:\n${next.map((sentence, index) => `${index + 1}. ${sentence}`).join("\n")}`);
