// What goes over the wire: how one item of 768 numbers is asked for, and where the 768 numbers of the reply stand.
import { binaryTensorRequest } from "../lib/kserve-request.mjs";

export const length = 768;

const json = { "content-type": "application/json" };
const floatsOf = (bytes) => new Float32Array(Uint8Array.from(bytes).buffer);

/** Eight digits a number: what a client sends that knows its numbers are float32, about 8 kB an item. */
const digits = (values) => `[${Array.from(values, (value) => Number(value.toPrecision(8))).join(",")}]`;

/** A JSON body made of the array of numbers; `pick` finds the array in the reply. */
export const jsonArray = (path, pick = (reply) => reply, body = (array) => array) => ({
  path,
  request: (values) => ({ headers: json, body: Buffer.from(body(digits(values))) }),
  output: (bytes) => Float32Array.from(pick(JSON.parse(bytes.toString("utf8")))),
});

/** Raw float32 in and out. */
export const rawFloats = (path) => ({
  path,
  request: (values) => ({
    headers: { "content-type": "application/octet-stream" },
    body: Buffer.from(values.buffer, values.byteOffset, values.byteLength),
  }),
  output: floatsOf,
});

/** KServe's Open Inference Protocol, version 2, with tensors as bytes. The reply's JSON head has no length of its own here: the tensor is what ends the body. */
export const kserveBinary = (path) => ({
  path,
  request: (values) => binaryTensorRequest(values),
  output: (bytes) => floatsOf(bytes.subarray(bytes.length - 4 * length)),
});

/** One whole HTTP/1.1 request. */
export function renderedRequest({ path, request }, values, port) {
  const { headers, body } = request(values);
  const fields = { host: `127.0.0.1:${port}`, ...headers, "content-length": body.length };
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${head.join("")}\r\n`), body]);
}
