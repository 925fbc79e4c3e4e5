import fc from "fast-check";
import { expecting, posting } from "./attack.mjs";
import { mutated } from "./bytes.mjs";
import { hostileJson, oneObject, outcomeOf } from "./hostile-json.mjs";

/** Callers' keys. Each input begins with its caller's, so that the API can tell whether it came with the right one. */
export const keys = ["sk-a", "sk-b", "sk-c"];
const key = fc.constantFrom(...keys);
const authorization = (of) => `authorization: Bearer ${of}`;

/** As those over HTTP: `slices`, `end` and a `check` of the reply where it is known. */
export const cases = () =>
  fc.oneof(
    { weight: 4, arbitrary: climbing },
    { weight: 3, arbitrary: hostileParameter },
    { weight: 2, arbitrary: hostileInput },
    { weight: 2, arbitrary: mutated(embedding.map(({ slices: [bytes] }) => bytes)).map((bytes) => ({ name: "mutated request", slices: [bytes], end: "end" })) },
    { weight: 2, arbitrary: embedding },
    { weight: 1, arbitrary: foreignHost },
    { weight: 1, arbitrary: longConnection },
    { weight: 1, arbitrary: fc.uint8Array({ minLength: 1, maxLength: 200 }).map((bytes) => ({ name: "garbage", slices: [Buffer.from(bytes)], end: "end" })) },
  ); // prettier-ignore

/** Paths that may lead out of the upstream's base path. What the API gets of them is looked at afterwards. */
const segment = fc.constantFrom(
  "v1", "base", "models", "embeddings", "admin", "..", ".", "%2e%2e", "%2E.", ".%2e", "..%2f", "..%2Fadmin", "%2e%2e%2fadmin",
  "..%5c", "..%5Cadmin", "%2f", "%5c", "\\", "..\\admin", "", "%00", "%252e%252e", "%c0%ae%c0%ae", "..;", "..org", "a..", "%2e", "...",
); // prettier-ignore
const climbing = fc
  .tuple(fc.constantFrom("GET", "POST", "DELETE"), fc.array(segment, { minLength: 1, maxLength: 7 }), fc.constantFrom("", "?a=..%2f..", "?x=/../admin"), key)
  .map(([method, segments, query, of]) => {
    const head = [`${method} /${segments.join("/")}${query} HTTP/1.1`, "host: localhost", "connection: close", authorization(of)];
    return { name: "climbing path", slices: [Buffer.from(`${head.join("\r\n")}\r\n\r\n`)], end: "wait" };
  }); // prettier-ignore

const asking = (name, of, body, status, part) => ({
  name,
  slices: [posting("/v1/embeddings", body, [authorization(of)])],
  end: "wait",
  check: expecting(status, part),
});
const statusOf = (outcome) => ({ kept: "200", refused: "422", broken: "(?:400|422)" })[outcome];

const embedding = fc
  .tuple(key, fc.nat(50))
  .map(([of, number]) => asking("embedding", of, JSON.stringify({ model: "tiny", input: `${of} ${number}` }), "200"));

/** Any parameter is passed on as it was sent, or the request is refused. */
const hostileParameter = fc.tuple(key, fc.nat(50), hostileJson).map(([of, number, value]) => {
  const around = { ...oneObject, keys: 3 };
  const outcome = outcomeOf(value, around);
  const body = `{"model":"tiny","input":"${of} ${number}","x":${value.text}}`;
  return asking(`parameter ${outcome}`, of, body, statusOf(outcome));
});

/** Values that are not texts go to the API alone, which may refuse them in its own words. */
const hostileInput = fc.tuple(key, hostileJson).map(([of, value]) => {
  const outcome = outcomeOf(value, { ...oneObject, keys: 2 });
  const status = outcome === "kept" ? "(?:200|400)" : statusOf(outcome);
  return asking(`input ${outcome}`, of, `{"model":"tiny","input":${value.text}}`, status);
});

/** As many spaces as a header may have, and the names of headers that are not passed on. */
const longConnection = fc
  .tuple(key, fc.array(fc.constantFrom(" ", "\t", ",", " ,\t", "x-hop", "a"), { maxLength: 6 }), fc.nat(12_000))
  .map(([of, parts, length]) => {
    const value = ["a", ...parts].join(" ".repeat(length / (parts.length + 1)));
    const body = JSON.stringify({ model: "tiny", input: of });
    const lines = [`connection: ${value}, close`, "x-hop: 1", authorization(of)];
    return { name: "long connection header", slices: [posting("/v1/embeddings", body, lines)], end: "wait", check: expecting("200") }; // prettier-ignore
  });

const foreignHost = fc.constantFrom("evil.example", "localhost.evil.example", "10.0.0.1").map((host) => ({
  name: "host",
  slices: [posting("/v1/embeddings", '{"model":"tiny","input":"sk-a"}', [`host: ${host}`, authorization("sk-a")])],
  end: "wait",
  check: expecting("421"),
}));
