import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { get, until } from "../asking.js";
import { few, post, pythonModel, skipWithoutPython as skip } from "./python.js";
import { temporaryFolder } from "../folder.js";
import { ready, sheaf } from "./sheaf-process.js";

const folder = temporaryFolder({ after });

test(
  "an item's error is its caller's, a batch's all callers'; tracebacks and prints go to the log",
  { skip },
  async (t) => {
    const served = sheaf(t, ["serve", pythonModel("words"), "--port", "0"], few);
    const url = await ready(served);
    const { json } = await post(`${url}/infer`, { inputs: ["a", "fail", "refuse", "b"] });
    assert.deepEqual(json.outputs, [
      "A",
      { error: { code: "MODEL_ERROR", message: "The model failed: ValueError: this one is bad" } },
      { error: { code: "INVALID_INPUT", message: "no such word" } },
      "B",
    ]);
    assert.equal((await post(`${url}/infer`, "refuse")).status, 422);
    const failed = await post(`${url}/infer`, "raise");
    assert.deepEqual([failed.status, failed.json.detail], [500, "The model failed: KeyError: 'all of them'"]);
    assert.doesNotMatch(JSON.stringify(failed.json), /Traceback/);
    await until(() => /Traceback \(most recent call last\).*words\.py.*raise KeyError/.test(served.output.stdout)); // prettier-ignore
    assert.equal((await post(`${url}/infer`, "print")).json.output, "PRINT");
    await until(() => /"model":"words","workerPid":\d+,"msg":"secret of another caller"/.test(served.output.stdout)); // prettier-ignore
  },
);

test("on SIGTERM what is in is finished, and no worker is left", { skip }, async (t) => {
  const served = sheaf(t, ["serve", pythonModel("words"), "--port", "0", "--max-batch-size", "4"], few);
  const url = await ready(served);
  const pid = Number((await post(`${url}/infer`, "pid")).json.output);
  const replies = Array.from({ length: 10 }, () => post(`${url}/infer`, "slow"));
  const busy = 'sheaf_workers{batcher="words",state="busy"} 1';
  await until(async () => (await get(`${url}/metrics`)).text.includes(busy));
  served.child.kill("SIGTERM");
  // What was in is answered; what had not arrived yet may be refused, or find nobody.
  const outcomes = await Promise.allSettled(replies);
  const statuses = outcomes.flatMap((one) => (one.status === "fulfilled" ? [one.value.status] : []));
  assert.ok(statuses.includes(200) && statuses.every((status) => status === 200 || status === 503), statuses.join());
  assert.equal(await served.ended, 0);
  assert.throws(() => process.kill(pid, 0), /ESRCH/);
});

test(
  "a model that cannot load, and a Python that is not there, end the command with 1 and say why",
  { skip },
  async (t) => {
    const missing = join(folder, "missing.py");
    writeFileSync(missing, "import no_such_library\n");
    const silent = join(folder, "silent.py");
    writeFileSync(silent, "print('hello')\n");
    const cases: [string[], RegExp][] = [
      [[missing], /missing\.py cannot be served: .*ModuleNotFoundError: No module named 'no_such_library'/],
      [[silent], /silent\.py cannot be served: .*before it was ready: .*does it call serve\(\)/],
      [[missing, "--python", "python-that-is-not-there"], /python-that-is-not-there cannot be started \(PYTHON\): there is no such program; name the Python of your environment/], // prettier-ignore
    ];
    for (const [words, message] of cases) {
      const served = sheaf(t, ["serve", "--port", "0", ...words]);
      assert.equal(await served.ended, 1);
      assert.match(served.output.stderr, message);
    }
    execFileSync("python3", ["-m", "venv", "--without-pip", join(folder, ".venv")]);
    const lacking = sheaf(t, ["serve", "--port", "0", missing]);
    assert.equal(await lacking.ended, 1);
    assert.match(lacking.output.stderr, /Its Python is \/.*\/\.venv\/bin\/python: install the missing package there, or set PYTHON to another\./); // prettier-ignore
    rmSync(join(folder, ".venv"), { recursive: true });
    const empty = mkdtempSync(join(folder, "path-"));
    const served = sheaf(t, ["serve", "--port", "0", missing], { PATH: empty });
    assert.equal(await served.ended, 1);
    assert.match(
      served.output.stderr,
      /python3 cannot be started \(PYTHON\): .*; install Python 3\.9 or newer \(on Debian/,
    );
  },
);
