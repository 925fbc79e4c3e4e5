// checkWorker finds what a worker does wrong, and nothing else; `sheaf check-worker` prints it.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, test } from "node:test";
import { checkWorker, type WorkerCheck } from "../../../dist/node/index.js";
import { cases, type Case } from "../../../dist/node/command/check/cases.js";
import { CheckedWorker } from "../../../dist/node/command/check/checked-worker.js";
import { pathOf, skipWithoutPython } from "./setup.js";

/** What it finds up to the first broken promise. */
async function check(script: string, ...args: string[]): Promise<{ kept: number; broken: WorkerCheck | undefined }> {
  let kept = 0;
  for await (const found of checkWorker({ command: "python3", args: [resolve(pathOf("."), script), ...args] })) {
    if (!found.ok) return { kept, broken: found };
    kept++;
  }
  return { kept, broken: undefined };
}

/** Tries one promise on broken.py, whose every step but the load may take `patienceMs`. */
async function checkOne(promise: Case, how: string, patienceMs: number): Promise<void> {
  const started: CheckedWorker[] = [];
  const command = { command: "python3", args: [pathOf("broken.py"), how], cwd: undefined, env: {} };
  const start = (): CheckedWorker => {
    const worker = new CheckedWorker({ ...command, data: undefined, loadTimeoutMs: 60_000, patienceMs });
    started.push(worker);
    return worker;
  };
  try {
    await promise.run(start);
  } finally {
    for (const worker of started) await worker.kill();
  }
}

describe("checkWorker", { skip: skipWithoutPython }, () => {
  test("sheaf_worker keeps every promise", async () => {
    assert.deepEqual(await check("broken.py", "in no way"), { kept: 19, broken: undefined });
    assert.deepEqual(await check("arrays.py"), { kept: 19, broken: undefined });
  });

  for (const name of [/ends when the pipe ends while it loads/, /refuses a version/])
    test(`a worker may import for as long as it may load: ${name.source}`, async () => {
      await checkOne(
        cases.find((each) => name.test(each.name))!,
        "imports slowly",
        300,
      );
    });

  test("a worker whose load reads its data passes without any, as python.md's first model does", async () => {
    const page = readFileSync(new URL("../../../../../docs/guide/python.md", import.meta.url), "utf8");
    const [, source] = /^```python\n# shout\.py\n([^]*?)^```$/m.exec(page)!;
    const folder = mkdtempSync(join(tmpdir(), "sheaf-shout-"));
    writeFileSync(join(folder, "shout.py"), source!);
    const broken = source!.replace("data.get", "data.got");
    writeFileSync(join(folder, "broken.py"), broken);
    assert.deepEqual(await check(join(folder, "shout.py")), { kept: 19, broken: undefined });
    const line = broken.split("\n").findIndex((text) => text.includes("data.got")) + 1;
    const found = await check(join(folder, "broken.py"));
    assert.equal(
      found.broken?.detail,
      `it cannot load: AttributeError: 'dict' object has no attribute 'got' (${folder}/broken.py, line ${line})`,
    );
    rmSync(folder, { recursive: true });
  });

  for (const [how, name, detail] of [
    ["stops", /says what it takes/, /it ended \(exit code 1\): no such model/],
    ["count", /answers batches of 1, 2, 7 and 64/, /returned 6 results for 7 items/],
    ["fails", /answers batches of 1, 2, 7 and 64/, /a batch of 64 of its sample failed/],
    ["run-time", /says how long a run took/, /without runMs/],
    ["signals", /goes on after SIGINT and SIGTERM/, /it ended/],
    ["exit-code", /exits with 0/, /its exit code is 5/],
    ["inherits", /does not hand its end of the pipe on/, /not close-on-exec/],
    ["group", /leads a process group of its own/, /there is no such group/],
    ["changes", /declares the same/, /first .*, then /],
    ["bound", /ends after a frame that is over the bound/, /it still runs after 2000 ms/],
    ["version", /refuses a version/, /it is ready all the same/],
  ] as const) {
    const skip = how === "inherits" && process.platform !== "linux" ? "only Linux shows it" : false;
    test(`it finds a worker that is broken in this way: ${how}`, { skip }, async () => {
      const [promise, ...others] = cases.filter((each) => name.test(each.name));
      assert.ok(promise !== undefined && others.length === 0);
      await assert.rejects(checkOne(promise, how, 2000), detail);
    });
  }
});
