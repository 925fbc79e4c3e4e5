import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";

const at = (path) => JSON.stringify(new URL(path, import.meta.url).href);

/** Runs test files of these paths: each fails with its error the first time, and passes then. */
async function run(t, errors) {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-run-tests-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const files = Object.entries(errors).map(([path, error], index) => {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `
      import { test } from "node:test";
      import { existsSync, writeFileSync } from "node:fs";
      import { assertResult } from ${at("support/result.mjs")};
      const seen = ${JSON.stringify(join(folder, `seen-${index}`))};
      test("promise", () => {
        if (existsSync(seen)) return;
        writeFileSync(seen, "");
        ${error};
      });`); // prettier-ignore
    return file;
  });
  const program = join(folder, "run.mjs");
  writeFileSync(program, `
    import { runTests } from ${at("../scripts/lib/run-tests.mjs")};
    process.exit((await runTests(${JSON.stringify(files)})) ? 0 : 1);`); // prettier-ignore
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return new Promise((resolve) =>
    execFile(process.execPath, [program], { env }, (error, output) => resolve({ passes: error === null, output })),
  );
}

const late = `throw new Error("not true within five minutes\\n  at …")`;

test("a file that passes alone the second time passes the run, and is named unsteady before the closing lines", async (t) => {
  const { passes, output } = await run(t, { "e2e/late.test.mjs": late, "e2e/right.test.mjs": "" });
  assert.ok(passes, output);
  assert.match(output, /\nunsteady: \S*e2e\/late\.test\.mjs: not true within five minutes\nℹ tests 1\n/);
});

test("a wrong result fails the run though its file would pass the second time", async (t) => {
  const { passes, output } = await run(t, { "e2e/wrong.test.mjs": "assertResult([1, 1], [1])" });
  assert.ok(!passes && output.includes("WRONG_RESULT") && !output.includes("unsteady"), output);
});

test("three unsteady files fail the run, and so does one of `npm test`", async (t) => {
  const three = await run(t, { "e2e/1.test.mjs": late, "e2e/2.test.mjs": late, "e2e/3.test.mjs": late });
  assert.ok(!three.passes && three.output.includes("✖ promise"), three.output);
  const { passes, output } = await run(t, { "unit.test.mjs": late });
  assert.ok(!passes && output.includes("✖ promise"), output);
});
