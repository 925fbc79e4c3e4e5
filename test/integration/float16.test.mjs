// Float16 tensors of an ONNX file through every protocol, read by NVIDIA's own clients.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { OnnxGraph } from "../support/onnx-writer.mjs";
import { runPython } from "./lib/programs.mjs";
import { skipWithoutPython } from "./lib/python.mjs";
import { serveWithGrpc } from "./lib/serving.mjs";

/** y = 2x + 1 in float32, on halves `[batch, 4]`. */
function halves() {
  const graph = new OnnxGraph();
  const doubled = graph.node("Mul", [graph.node("Cast", ["x"], { to: 1 }), graph.scalar("two", 2)]);
  const sum = graph.node("Add", [doubled, graph.scalar("one", 1)]);
  const y = graph.rename(graph.node("Cast", [sum], { to: 10 }), "y");
  const value = (name) => ({ name, type: "float16", axes: ["batch", 4] });
  return graph.model({ inputs: [value("x")], outputs: [value(y)] });
}

// The last two numbers are between halves: 0.099 becomes 0.09899902…, 32,750 becomes 32,752.
const rows = [
  [0, 1, -2, 0.5],
  [1000, -0.25, 0.099, 32_750],
];
// 1.1979980… and 65,505, as halves.
const expected = [
  [1, 3, -3, 2],
  [2001, 0.5, 1.1982421875, 65_504],
];

test("float16 tensors cross JSON, bytes and gRPC", { skip: skipWithoutPython }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-float16-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "halves.onnx");
  writeFileSync(file, halves());
  const { url, grpcAddress } = await serveWithGrpc(t, file);
  const client = await runPython("float16_client.py", [url, grpcAddress], { rows });
  const [input] = client.metadata.inputs;
  assert.deepEqual([input.datatype, input.shape, client.config], ["FP16", [-1, 4], "TYPE_FP16"]);
  for (const protocol of ["binary", "json", "grpc"])
    assert.deepEqual(client[protocol], { dtype: "float16", rows: expected }, protocol);
  assert.match(client["not finite"], /finite/);

  const post = async (path, body) => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: response.status, json: await response.json() };
  };
  const inputs = [{ name: "x", datatype: "FP16", shape: [2, 4], data: rows }];
  const { json } = await post("/v2/models/halves/infer", { inputs });
  assert.deepEqual(json.outputs[0].data, expected.flat());
  const { json: plain } = await post("/infer", { input: rows[1] });
  assert.deepEqual(plain.output, { y: expected[1] });
  const { status, json: problem } = await post("/infer", { input: [0, 0, 65_505, 0] });
  assert.equal(status, 422);
  assert.match(problem.detail, /from -65504 to 65504, got 65505/);
});
