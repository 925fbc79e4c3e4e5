import fc from "fast-check";
import { expecting, posting } from "./attack.mjs";
import { mutated } from "./bytes.mjs";
import { hostileJson, hostileList, mostInputs, oneObject, outcomeOf } from "./hostile-json.mjs";

/** A case: what is written, in slices, how the connection ends, and a `check` of the reply where it is known. */
export const cases = () =>
  fc.oneof(
    { weight: 6, arbitrary: requests(1).map((slices) => ({ name: "request", slices, end: "wait" })) },
    { weight: 2, arbitrary: requests(4).map((slices) => ({ name: "pipelined", slices, end: "wait" })) },
    { weight: 2, arbitrary: sliced().map((slices) => ({ name: "slow upload", slices, end: "wait" })) },
    { weight: 1, arbitrary: requests(1).map((slices) => ({ name: "aborted", slices, end: "destroy" })) },
    { weight: 1, arbitrary: sliced().map((slices) => ({ name: "broken upload", slices: slices.slice(0, -1), end: "destroy" })) },
    { weight: 1, arbitrary: sliced().map((slices) => ({ name: "half-closed upload", slices: slices.slice(0, -1), end: "end" })) },
    { weight: 2, arbitrary: hostileJson.map(hostileItem) },
    { weight: 1, arbitrary: hostileBody },
    { weight: 1, arbitrary: hostileList.map(hostileInputs) },
    { weight: 1, arbitrary: hosts.map((host) => ({ name: "host", slices: [posting("/infer", "[1,2,3]", [`host: ${host}`])], end: "wait", check: expecting(isLocal(host) ? "200" : "421") })) },
    { weight: 1, arbitrary: encodedPaths.map((path) => ({ name: "encoded path", slices: [posting(path, "[1,2,3]")], end: "wait" })) },
    { weight: 1, arbitrary: longHeaders().map((slices) => ({ name: "over-long headers", slices, end: "wait" })) },
    { weight: 1, arbitrary: fc.uint8Array({ minLength: 1, maxLength: 200 }).map((bytes) => ({ name: "garbage", slices: [Buffer.from(bytes)], end: "end" })) },
    { weight: 1, arbitrary: mutated(request(fc.constant("close"))).map((bytes) => ({ name: "mutated request", slices: [bytes], end: "end" })) },
  ); // prettier-ignore

/** An item of any JSON comes back as it was sent, or is refused. */
function hostileItem(value) {
  const outcome = outcomeOf(value, oneObject);
  const kept = outcome === "kept" ? `"output":${JSON.stringify(JSON.parse(value.text))}` : "";
  const check = expecting({ kept: "200", refused: "422", broken: "(?:400|422)" }[outcome], kept);
  return { name: `item ${outcome}`, slices: [posting("/infer/echo", `{"input":${value.text}}`)], end: "wait", check };
}

/** Of several inputs each comes back as it was sent, or has an error of its own; a list that is too long is refused. */
function hostileInputs(values) {
  const body = `{"inputs":[${values.map(({ text }) => text).join()}]}`;
  const isLong = values.length > mostInputs;
  const outputs = values.map(({ text, isChanged }) => (isChanged ? "refused" : JSON.stringify(JSON.parse(text))));
  const check = (reply) => {
    const wrong = expecting(isLong ? "(?:413|422)" : "200")(reply);
    if (wrong !== undefined || isLong) return wrong;
    const got = JSON.parse(Buffer.from(reply.slice(reply.indexOf("\r\n\r\n")), "latin1").toString()).outputs;
    const at = outputs.findIndex((expected, i) =>
      expected === "refused" ? got[i]?.error?.code !== "INVALID_INPUT" : JSON.stringify(got[i]) !== expected,
    );
    return at < 0 && got.length === outputs.length ? undefined : `expected ${outputs[at]} at ${at}`;
  };
  return { name: isLong ? "too many inputs" : "inputs", slices: [posting("/infer/echo", body)], end: "wait", check };
}

const jsonRoutes = [
  "/infer", "/infer/double", "/v1/embeddings", "/rerank", "/v1/rerank", "/v2/models/echo/infer", "/embed", "/predict",
  "/v2/embed", "/api/embed", "/vectors",
]; // prettier-ignore

/** A body over a bound is refused on every route, whatever the route is for. */
const hostileBody = fc.tuple(hostileJson, fc.constantFrom(...jsonRoutes)).map(([value, path]) => {
  const isOver = outcomeOf({ ...value, isChanged: false }) === "refused";
  const slices = [posting(path, value.text)];
  return {
    name: isOver ? "body over a bound" : "body",
    slices,
    end: "wait",
    ...(isOver && { check: expecting("422") }),
  };
});

const localHosts = [
  "localhost",
  "LOCALHOST:80",
  "localhost.",
  "a.localhost",
  "127.0.0.1",
  "127.1.2.3:8000",
  "[::1]",
  "[::1]:1",
];
const isLocal = (host) => localHosts.includes(host);
const hosts = fc.oneof(
  fc.constantFrom(...localHosts),
  fc.constantFrom("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "notlocalhost", "localhost@evil.example", "10.0.0.1", "[fe80::1]", "0x7f.1"),
  fc.domain(),
); // prettier-ignore

const encodedPaths = fc
  .array(fc.constantFrom("infer", "double", "v2", "models", "..", "%2e%2e", ".%2E", "..%2f", "%2f", "%5c..", "\\", "", "%00", "%252e%252e", "%c0%af", ";"), { minLength: 1, maxLength: 6 })
  .map((segments) => `/${segments.join("/")}`); // prettier-ignore

const word = fc.stringMatching(/^[A-Za-z0-9_-]{1,12}$/);
const methods = fc.oneof(
  { weight: 8, arbitrary: fc.constant("POST") },
  fc.constantFrom("GET", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", "QUERY", "post", "NOTHING"),
);
const paths = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      "/infer",
      "/infer/double",
      "/infer/measure",
      "/v1/embeddings",
      "/v1/models",
      "/metrics",
      "/readyz",
    ),
  },
  fc.constantFrom(
    "/",
    "//",
    "/infer/",
    "/infer//",
    "/INFER",
    "/infer?x=1",
    "/%",
    "/%00",
    "/infer/%E0%A4%A",
    "/../etc",
    "*",
    "/infer/__proto__",
  ),
  fc.stringMatching(/^\/[!-~]{0,60}$/),
  word.map((text) => `/infer/${text.repeat(100)}`),
);
const headerValue = fc.stringMatching(/^[ -~]{0,40}$/);
const headers = fc.array(
  fc.oneof(
    fc.tuple(fc.constantFrom("x-sheaf-priority", "x-request-timeout-ms", "x-request-id", "traceparent", "authorization", "origin"), headerValue),
    fc.tuple(fc.constant("x-sheaf-priority"), fc.constantFrom("immediate", "bulk", "urgent")),
    fc.tuple(fc.constant("x-request-timeout-ms"), fc.constantFrom("50", "0", "-1", "1e9", "NaN")),
    fc.tuple(fc.constantFrom("content-encoding", "accept", "expect", "upgrade", "te"), fc.constantFrom("gzip", "identity", "*/*", "100-continue", "websocket")),
    fc.tuple(word, headerValue),
  ),
  { maxLength: 4 },
); // prettier-ignore
const contentTypes = fc.oneof(
  { weight: 8, arbitrary: fc.constant("application/json") },
  fc.constantFrom(
    "application/json; charset=utf-8",
    "application/json;charset=latin1",
    "text/plain",
    "multipart/form-data",
    "",
    "application/",
    ";",
  ),
);

const value = fc.oneof(
  fc.constantFrom("[1,2,3]", '"text"', '{"input":[1,2,3]}', '{"inputs":[[1,2,3],[4,5,6]]}', '{"inputs":["a","b"]}', '{"input":"text"}'),
  fc.constantFrom('{"model":"measure","input":"text"}', '{"model":"measure","input":["a","b"],"encoding_format":"base64"}'),
  fc.constantFrom("[1,2,1e999]", "[NaN,1,2]", "[1e39,0,0]", "[-0,1e-999,5e-324]", '{"__proto__":1}', '{"inputs":[]}', "[[[[1]]]]", '""', "null", "\ufeff[1,2,3]"),
  fc.json({ maxDepth: 4 }),
  fc.array(fc.double(), { maxLength: 5 }).map((numbers) => JSON.stringify({ input: numbers })),
  fc.string({ maxLength: 300, unit: "binary" }).map((text) => JSON.stringify({ model: "measure", input: text })),
  hostileJson.map(({ text }) => text),
  fc.constant(`"${"x".repeat(150_000)}"`),
); // prettier-ignore
const bodies = fc.oneof(
  { weight: 3, arbitrary: value.map((text) => Buffer.from(text)) },
  mutated(value.map((text) => Buffer.from(text))),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
);

function request(connection) {
  return fc
    .record({
      method: methods,
      path: paths,
      type: contentTypes,
      headers,
      body: bodies,
      connection,
      isChunked: fc.boolean(),
    })
    .map((parts) => {
      const lines = [`${parts.method} ${parts.path} HTTP/1.1`, "host: localhost", `connection: ${parts.connection}`];
      if (parts.type !== "") lines.push(`content-type: ${parts.type}`);
      for (const [name, text] of parts.headers) lines.push(`${name}: ${text}`);
      lines.push(parts.isChunked ? "transfer-encoding: chunked" : `content-length: ${parts.body.length}`);
      const body = parts.isChunked
        ? Buffer.concat([Buffer.from(`${parts.body.length.toString(16)}\r\n`), parts.body, Buffer.from(parts.body.length > 0 ? "\r\n0\r\n\r\n" : "\r\n")])
        : parts.body; // prettier-ignore
      return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`), body]);
    });
}

/** Up to `most` requests in one write; the last one ends the connection. */
function requests(most) {
  return fc
    .tuple(fc.array(request(fc.constant("keep-alive")), { maxLength: most - 1 }), request(fc.constant("close")))
    .map(([others, last]) => [Buffer.concat([...others, last])]);
}

/** A request in up to six slices. */
function sliced() {
  return fc
    .tuple(
      request(fc.constant("close")),
      fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 5 }),
    )
    .map(([bytes, cuts]) => {
      const at = [0, ...cuts.map((cut) => Math.floor(cut * bytes.length)).sort((a, b) => a - b), bytes.length];
      return at.slice(1).map((end, i) => bytes.subarray(at[i], end));
    });
}

function longHeaders() {
  return fc
    .tuple(fc.integer({ min: 1000, max: 40_000 }), fc.integer({ min: 1, max: 30 }))
    .map(([length, count]) => [
      Buffer.from(
        `POST /infer HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 7\r\n${`x-long: ${"y".repeat(Math.ceil(length / count))}\r\n`.repeat(count)}\r\n[1,2,3]`,
      ),
    ]);
}
