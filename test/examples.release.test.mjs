// Every folder in examples/ is listed, can be copied out of the repository, and is run: here, or by a test that brings what
// it needs.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { suite, test } from "node:test";
import { promisify } from "node:util";
import { complaintsOnManifest, examples, isLight, runExample } from "../scripts/lib/examples.mjs";
import { filesBelow, root } from "../scripts/lib/files.mjs";
import { tableRows } from "../scripts/lib/markdown.mjs";
import { packTarballs, userEnvironment } from "../scripts/lib/tarballs.mjs";
import { command as NATS_SERVER } from "./support/nats-server.mjs";
import { skipWithoutPython } from "./support/python.mjs";

const all = examples();
const read = (path) => readFileSync(`${root}/${path}`, "utf8");

test("examples/README.md lists every example, and no other", () => {
  const listed = tableRows(read("examples/README.md"), "example").map(([cell]) => /^\[(.+)\]\(\1\)$/.exec(cell)?.[1]);
  assert.deepEqual(listed.sort(), all.map(({ name }) => name).sort());
});

test("every example has a package.json with a start script that names the packages its files import", () => {
  assert.deepEqual(all.flatMap(complaintsOnManifest), []);
});

test("the BullMQ guide installs every package that its example installs", () => {
  const [, line] = /^npm install (.+)$/m.exec(read("docs/guide/messages.md"));
  const { dependencies } = JSON.parse(read("examples/bullmq/package.json"));
  assert.deepEqual(line.split(" ").sort(), Object.keys(dependencies).sort());
});

test("an example that needs more than the root installs is run by a test in test/integration/ or in a package", () => {
  const tests = ["test/integration", "packages/sheaf/test", "packages/sheaf-server/test"]
    .flatMap((folder) => filesBelow(folder, ""))
    .filter((file) => /\.test\.m?[jt]s$/.test(file) && !file.includes("/node_modules/"))
    .map((file) => ({ file: relative(root, file), source: readFileSync(file, "utf8") }));
  const missing = all
    .filter((example) => !isLight(example))
    .filter(({ name }) => !tests.some(({ source }) => source.includes(`examples/${name}`)))
    .map(({ name }) => `no test names examples/${name}`);
  assert.deepEqual(missing, []);
});

test("a copy of an example runs once sheaf is installed from its tarball", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-example-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const copy = join(folder, "hello");
  cpSync(`${root}/examples/hello`, copy, { recursive: true });
  const npm = (...words) => promisify(execFile)("npm", words, { cwd: copy, env: userEnvironment(), timeout: 300_000 });
  const [tarball] = await packTarballs(["sheaf"], folder);
  await npm("install", "--no-audit", "--no-fund", tarball.path);
  assert.match((await npm("start")).stdout, /one query for 2, 3, 4/);
});

suite("each runs", { concurrency: 4 }, () => {
  for (const example of all.filter(isLight))
    test(`examples/${example.name} runs, and what it claims holds`, { skip: skipOf(example) }, () =>
      runExample(example, { NATS_SERVER }),
    );
});

function skipOf({ name }) {
  return filesBelow(`examples/${name}`, ".py").length > 0 && skipWithoutPython;
}
