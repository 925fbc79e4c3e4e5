import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { root } from "../scripts/lib/files.mjs";
import { suiteOf } from "../scripts/lib/suites.mjs";

const folder = mkdtempSync(join(tmpdir(), "sheaf-reporter-"));
after(() => rmSync(folder, { recursive: true }));

function runTests(files) {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const paths = Object.keys(files).map((name) => join(folder, name));
  // Without NODE_TEST_CONTEXT: the runner below must not believe that it is a child of this one.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return new Promise((resolve) => {
    const parameters = ["--test", `--test-reporter=${root}/scripts/lib/reporter.mjs`, ...paths];
    execFile(process.execPath, parameters, { env }, (error, stdout) => resolve({ status: error?.code ?? 0, stdout }));
  });
}

const passing = `import { test } from "node:test"; test("one", () => {}); test("two", () => {});`;
const failing = `import { test } from "node:test"; test("three", () => { throw new Error("no"); });`;

test("a run passes, and its last lines are the runner's own, after the suites' times", async () => {
  const { status, stdout } = await runTests({ "passing.test.mjs": passing });
  assert.equal(status, 0);
  assert.match(stdout, /✔ one [^]*1 files +2 tests +\d+\.\d s[^]*ℹ tests 2\n[^]*ℹ duration_ms [\d.]+\n$/);
});

test("a run in which a file ran no test fails and names the file", async () => {
  const { status, stdout } = await runTests({ "passing.test.mjs": passing, "empty.test.mjs": "" });
  assert.equal(status, 1);
  assert.match(stdout, /✖ \S*empty\.test\.mjs ran no test/);
});

test("a run with a failing test fails and shows the error", async () => {
  const { status, stdout } = await runTests({ "failing.test.mjs": failing });
  assert.equal(status, 1);
  assert.match(stdout, /ℹ fail 1\n[^]*Error: no/);
});

test("a run's last lines are the names of what failed: each test once, below its file and the tests around it", async () => {
  const nested = `import { describe, test } from "node:test";
    describe("outer", () => { test("good", () => {}); test("bad", () => { throw new Error("no"); }); });
    test("around", async (t) => { await t.test("inside", () => { throw new Error("no"); }); });
    test("later", { todo: true }, () => { throw new Error("no"); });`;
  const files = { "nested.test.mjs": nested, "breaks.test.mjs": "throw new Error('no');", "empty.test.mjs": "" };
  const { status, stdout } = await runTests({ ...files, "passing.test.mjs": passing });
  assert.equal(status, 1);
  const [, list] = stdout.split("\nFailed:\n");
  assert.deepEqual(
    list
      .replaceAll(/\S*\/(?=\w+\.test)/g, "")
      .trimEnd()
      .split("\n")
      .sort(),
    [
      "  ✖ breaks.test.mjs",
      "  ✖ empty.test.mjs ran no test",
      "  ✖ nested.test.mjs › around › inside",
      "  ✖ nested.test.mjs › outer › bad",
    ],
  );
});

test("a suite is named by its package and kind of test", () => {
  const suites = {
    "packages/sheaf/dist-test/core/queue.test.js": "sheaf unit",
    "packages/sheaf/dist-test/properties/core.test.js": "sheaf properties",
    "packages/sheaf-server/dist-test/e2e/serve.test.js": "sheaf-server e2e",
    "test/checks.test.mjs": "repository",
  };
  for (const [path, suite] of Object.entries(suites)) assert.equal(suiteOf(join(root, path)), suite);
});
