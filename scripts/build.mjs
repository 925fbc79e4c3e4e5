// Builds both packages with plain tsc: files 1:1, so that worker entry URLs keep working. `--tests` builds the tests too.
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { root } from "./lib/files.mjs";

const tests = process.argv.includes("--tests");
for (const name of ["sheaf", "sheaf-server"]) {
  for (const folder of ["dist", "dist-test"])
    rmSync(`${root}/packages/${name}/${folder}`, { recursive: true, force: true });
  compile(`packages/${name}`);
  if (tests) compile(`packages/${name}/test`);
}
if (tests) {
  compile("packages/sheaf/tsconfig.core.json");
  // The pages run as they are written; their types are checked.
  compile("packages/sheaf-server/tsconfig.page.json");
  compile("playground");
}

function compile(project) {
  const { status } = spawnSync(process.execPath, [`${root}/node_modules/typescript/bin/tsc`, "-p", project], {
    cwd: root,
    stdio: "inherit",
  });
  if (status !== 0) process.exit(status ?? 1);
}
