// What a stranger gets: the packed tarballs, installed into an empty project outside the repository.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { root } from "../scripts/lib/files.mjs";
import { installTarballs, packTarballs, strangersEnvironment } from "../scripts/lib/tarballs.mjs";

const folder = mkdtempSync(join(tmpdir(), "sheaf-tarballs-"));
const project = join(folder, "project");
const options = { cwd: project, env: strangersEnvironment() };
let tarballs;
before(async () => {
  tarballs = await packTarballs(["sheaf", "sheaf-server"], join(folder, "packed"));
  await installTarballs(tarballs, project);
});
after(() => rmSync(folder, { recursive: true }));

test("a tarball holds the build, its sources, a README and the license, and nothing else", () => {
  for (const { files } of tarballs) {
    for (const name of ["README.md", "LICENSE", "package.json", "dist/index.js", "src/index.ts"])
      assert.ok(files.includes(name), name);
    const allowed = /^(dist\/.+\.(js|d\.ts|js\.map|d\.ts\.map)|src\/.+|README\.md|LICENSE|NOTICE|package\.json)$/;
    const other = files.filter((file) => !allowed.test(file) && !file.startsWith("dist/dashboard/"));
    assert.deepEqual(other, []);
  }
  for (const name of ["sheaf", "sheaf-server"])
    assert.equal(readFileSync(`${root}/packages/${name}/LICENSE`, "utf8"), readFileSync(`${root}/LICENSE`, "utf8"));
});

async function run(file, script) {
  writeFileSync(join(project, file), script);
  return (await promisify(execFile)(process.execPath, [file], options)).stdout.trim();
}

const use = `
  let runs = 0;
  const double = createBatcher((numbers) => (runs++, numbers.map((number) => 2 * number)));
  Promise.all([1, 2, 3].map(double)).then((results) => console.log(JSON.stringify({ results, runs })));`;
const used = JSON.stringify({ results: [2, 4, 6], runs: 1 });

test("an ES module imports the installed sheaf", async () => {
  assert.equal(await run("use.mjs", `import { createBatcher } from "sheaf"; ${use}`), used);
});

test("a CommonJS module requires the installed sheaf", async () => {
  assert.equal(await run("use.cjs", `const { createBatcher } = require("sheaf"); ${use}`), used);
});
