// Builds both packages with plain tsc: files 1:1, so that worker entry URLs keep working. `--tests` builds the tests too.
// Only what changed since the last build is compiled again.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { buildSync } from "esbuild";
import { root } from "./lib/files.mjs";

const tests = process.argv.includes("--tests");
for (const name of ["sheaf", "sheaf-server"]) {
  build(`packages/${name}`, "src", "dist");
  if (tests) build(`packages/${name}`, "test", "dist-test");
}
commonJs("packages/sheaf");
if (tests) {
  compile("packages/sheaf/tsconfig.core.json");
  // The page runs as it is written; its types are checked.
  compile("packages/sheaf-server/tsconfig.page.json");
}

/**
 * The library once more for `require`, beside `dist` and as deep: jest and TypeScript's node10 load no modules. esbuild
 * rewrites the compiled files one by one, and the types are the same text.
 */
function commonJs(folder) {
  const [from, to] = [`${root}/${folder}/dist`, `${root}/${folder}/cjs`];
  rmSync(to, { recursive: true, force: true });
  const files = readdirSync(from, { recursive: true });
  buildSync({
    entryPoints: files.filter((file) => file.endsWith(".js")).map((file) => `${from}/${file}`),
    outbase: from,
    outdir: to,
    format: "cjs",
    platform: "node",
    target: "node20",
    define: { "import.meta.url": "__moduleUrl" },
  });
  for (const file of files) {
    if (file.endsWith(".d.ts")) {
      const types = readFileSync(`${from}/${file}`, "utf8");
      writeFileSync(`${to}/${file}`, types.replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n"));
    } else if (file.endsWith(".js")) {
      const code = readFileSync(`${to}/${file}`, "utf8");
      const start = '"use strict";\nconst __moduleUrl = require("node:url").pathToFileURL(__filename).href;';
      if (code.includes("__moduleUrl")) writeFileSync(`${to}/${file}`, code.replace('"use strict";', start));
    }
  }
  writeFileSync(`${to}/package.json`, '{ "type": "commonjs" }\n');
}

function build(folder, sources, output) {
  const memory = `${root}/${folder}/${output}.tsbuildinfo`;
  if (existsSync(`${root}/${folder}/${output}`))
    removeStale(`${root}/${folder}/${sources}`, `${root}/${folder}/${output}`);
  else rmSync(memory, { force: true });
  compile(sources === "src" ? folder : `${folder}/${sources}`, "--incremental", "--tsBuildInfoFile", memory);
}

/** What was compiled from a file that is gone would still be found by imports and by the test runner. */
function removeStale(sources, output) {
  for (const entry of readdirSync(output, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    const folder = entry.parentPath ?? entry.path;
    const source = `${sources}${folder.slice(output.length)}/${entry.name.replace(/(\.d)?\.([mc]?)[jt]s(\.map)?$/, ".$2ts")}`;
    if (!existsSync(source)) rmSync(`${folder}/${entry.name}`);
  }
}

function compile(project, ...options) {
  const tsc = `${root}/node_modules/typescript/bin/tsc`;
  const { status } = spawnSync(process.execPath, [tsc, "-p", project, ...options], { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}
