// Builds the site into scripts/site/dist. `npm run site` at the repository's root calls it when this folder's dependencies are
// installed. `--base /sheaf/` is the path it will be served at; `--serve` shows it at a port.
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { build, serve } from "vitepress";
import { root } from "../lib/files.mjs";
import { fileOf, siteOf } from "./lib/site.mjs";

const { values } = parseArgs({
  options: { base: { type: "string", default: "/" }, serve: { type: "boolean", default: false } },
});
const folder = `${root}/scripts/site`;
const artifacts = `${folder}/artifacts`;

rmSync(`${artifacts}/pages`, { recursive: true, force: true });
const { pages, files, navigation } = siteOf(values.base);
for (const page of pages) write(`pages/${page.route}`, fileOf(page));
for (const file of files) copy(file, file.slice("docs/".length));
copy("packages/sheaf-server/src/dashboard/page/icon.svg", "icon.svg");
write("site.json", JSON.stringify({ base: values.base, ...navigation }));

await build(folder);
if (values.serve) await serve({ root: folder });

function write(path, text) {
  const file = join(artifacts, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** Puts a file of the repository beside the pages, as it is. */
function copy(file, path) {
  cpSync(join(root, file), join(artifacts, "pages/public", path));
}
