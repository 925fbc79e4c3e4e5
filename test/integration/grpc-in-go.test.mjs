// A client of the gRPC port in Go, which learns the service by reflection as grpcurl does: Go's tools refuse definitions
// that JavaScript's take.
import assert from "node:assert/strict";
import { test } from "node:test";
import { buildGo, skipWithoutGo } from "./lib/go.mjs";
import { runProgram } from "./lib/programs.mjs";
import { serveWithGrpc } from "./lib/serving.mjs";

const key = "s3cret";
const texts = ["The cat sits outside", "Straße, 東京, 😀"];
const request = (text, id) => ({
  model_name: "use-lite",
  id,
  inputs: [{ name: "text", datatype: "BYTES", shape: [1], contents: { bytes_contents: [Buffer.from(text).toString("base64")] } }],
}); // prettier-ignore

test(
  "a client in Go gets /infer's vectors, over single calls and a stream, with the key and in time",
  { skip: skipWithoutGo },
  async (t) => {
    const program = buildGo(t, "grpc-go");
    const { url, grpcAddress: address } = await serveWithGrpc(t, "use-lite", "--api-key", key);
    const expected = await vectors(url);
    const stream = texts.map((text, i) => request(text, String(i)));
    const got = await runProgram([program], { address, key, request: request(texts[0], "one"), stream });
    assert.deepEqual([got.health, got.refused, got.expired], ["SERVING", "Unauthenticated", "DeadlineExceeded"]);
    assert.equal(got.reply.id, "one");
    assertSame(got.reply, expected[0]);
    for (const [i, { infer_response: reply }] of got.stream.entries()) {
      assert.equal(reply.id, String(i));
      assertSame(reply, expected[i]);
    }
    assert.equal(got.stream.length, texts.length);
  },
);

/** A model's last bits depend on which texts share its run. */
function assertSame(reply, vector) {
  const [bytes] = reply.raw_output_contents.map((content) => Buffer.from(content, "base64"));
  assert.equal(bytes.length, 4 * vector.length);
  for (const [i, value] of vector.entries()) assert.ok(Math.abs(bytes.readFloatLE(4 * i) - value) < 1e-5, `${i}`);
}

async function vectors(url) {
  const response = await fetch(`${url}/infer`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ inputs: texts }),
  });
  return (await response.json()).outputs;
}
