// ONNX Runtime logs the settings with which it makes the threads of a run.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { folder, scaling, write } from "./made-models.js";

after(() => rmSync(folder, { recursive: true }));

test("the threads of a run spin for 20 µs at most", () => {
  const script = `
    const { InferenceSession } = await import(${JSON.stringify(import.meta.resolve("../../dist/runners/onnx/runtime.js"))});
    const create = InferenceSession.create;
    InferenceSession.create = (model, options) => create.call(InferenceSession, model, { ...options, logSeverityLevel: 0 });
    const { createSession } = await import(${JSON.stringify(import.meta.resolve("../../dist/runners/onnx/create-session.js"))});
    await (await createSession(${JSON.stringify(write("threads.onnx", scaling(["batch", 4])))}, { intraOpNumThreads: 2 })).release();
  `;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
  });
  assert.equal(status, 0, stderr);
  const settings = /Session Options.*config_options: (.*)/u.exec(stdout + stderr)?.[1] ?? "";
  assert.match(settings, /session\.intra_op\.allow_spinning: 1\b/u);
  assert.match(settings, /session\.intra_op\.spin_duration_us: 20\b/u);
});
