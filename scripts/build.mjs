// Builds both packages with plain tsc, file by file, and bundles the library as it is published. `--tests` builds the tests too.
// Only what changed since the last build is compiled again.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { bundleLibrary } from "./lib/bundle.mjs";
import { root } from "./lib/files.mjs";

const tests = process.argv.includes("--tests");
for (const name of ["sheaf", "sheaf-server"]) {
  build(`packages/${name}`, "src", "dist");
  // The server and every other user import what is published.
  if (name === "sheaf") await bundleLibrary();
  if (tests) build(`packages/${name}`, "test", "dist-test");
}
if (tests) {
  compile("packages/sheaf/tsconfig.core.json");
  // The page runs as it is written; its types are checked.
  compile("packages/sheaf-server/tsconfig.page.json");
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
