import fc from "fast-check";
import { mutated } from "./bytes.mjs";
import { framed, goodMessage, infer, lengthDelimited, shapedMessage, textMessage, varint } from "./grpc-messages.mjs";
import { hostileJson, outcomeOf } from "./hostile-json.mjs";

/**
 * Cases by weight: `calls` on one connection, `resets` (calls that are opened and reset until the server ends the
 * connection), a `storm` of fewer than it bears, or the `bytes` of a connection. `recorded` are those of a good call.
 */
export const cases = (recorded) =>
  fc.oneof(
    { weight: 8, arbitrary: call.map((one) => ({ name: "call", calls: [one] })) },
    { weight: 2, arbitrary: fc.array(call, { minLength: 2, maxLength: 40 }).map((some) => ({ name: "many calls", calls: some })) },
    { weight: 2, arbitrary: hostileText.map((one) => ({ name: "hostile JSON", calls: [one] })) },
    { weight: 2, arbitrary: hostileShape.map((one) => ({ name: "hostile shape", calls: [one] })) },
    { weight: 1, arbitrary: hostileHost.map((one) => ({ name: "host", calls: [one] })) },
    { weight: 1, arbitrary: fc.integer({ min: 50, max: 400 }).map((storm) => ({ name: "reset storm", storm, part: good.length })) },
    { weight: 1, arbitrary: fc.constantFrom(0, 5, 20, framed(good).length).map((part) => ({ name: "rapid reset", resets: 4000, part })) },
    { weight: 3, arbitrary: mutated(fc.constant(recorded)).map((bytes) => ({ name: "mutated connection", bytes })) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => ({ name: "garbage", bytes: Buffer.from(bytes) })) },
    { weight: 1, arbitrary: fc.nat(recorded.length).map((length) => ({ name: "cut connection", bytes: recorded.subarray(0, length) })) },
  ); // prettier-ignore

const text = fc.stringMatching(/^[ -~]{0,30}$/);
const names = ["ServerLive", "ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics", "RepositoryIndex", "RepositoryModelLoad", "ModelStreamInfer", "Nothing"]; // prettier-ignore
const paths = fc.oneof(
  { weight: 6, arbitrary: fc.constant(infer) },
  fc.constantFrom(...names).map((name) => `/inference.GRPCInferenceService/${name}`),
  fc.constantFrom("/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/", "*", "/__proto__", "/%00", "/Zürich", "/\x7f"),
  text.map((some) => `/${some}`),
); // prettier-ignore
const metadata = fc.array(
  fc.oneof(
    fc.tuple(fc.constantFrom("grpc-timeout", "grpc-encoding", "x-request-id", "x-sheaf-priority", "traceparent", "authorization", "some-bin"), text),
    fc.tuple(fc.constant("grpc-timeout"), fc.constantFrom("1m", "0S", "99999999H", "1n", "-1S", "1000000000S", "S")),
    fc.tuple(fc.constant("grpc-encoding"), fc.constantFrom("gzip", "deflate", "snappy", "identity")),
  ),
  { maxLength: 3 },
).map(Object.fromEntries); // prettier-ignore

/** A protobuf message of random fields, some of them nested. */
const { field } = fc.letrec((tie) => ({
  field: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.tuple(fc.integer({ min: 1, max: 9 }), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })).map(([number, value]) => Buffer.concat([varint(number << 3), varint(value)])),
    fc.tuple(fc.integer({ min: 1, max: 9 }), fc.uint8Array({ maxLength: 40 })).map(([number, bytes]) => lengthDelimited(number, Buffer.from(bytes))),
    fc.tuple(fc.integer({ min: 1, max: 9 }), fc.array(tie("field"), { maxLength: 4 })).map(([number, parts]) => lengthDelimited(number, Buffer.concat(parts))),
  ),
})); // prettier-ignore
const good = goodMessage(0);
const messages = fc.oneof(
  fc.array(field, { maxLength: 8 }).map((fields) => Buffer.concat(fields)),
  fc.array(field, { maxLength: 4 }).map((fields) => Buffer.concat([good, ...fields])),
  mutated(fc.constant(good)),
  fc.constant(good),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.nat(20).map((length) => Buffer.concat([good.subarray(0, -14), lengthDelimited(7, Buffer.alloc(length))])),
  fc.constantFrom(0x2a, 0x32, 0x22, 0x3a, 0x0b).map((tag) => Buffer.alloc(90_000, Buffer.from([tag, 0]))),
);
/** With its prefix, or with one that lies. */
const frames = fc
  .record({ message: messages, flag: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.nat(255)), length: fc.option(fc.oneof(fc.nat(300), fc.nat(2 ** 32 - 1)), { freq: 4 }), cut: fc.option(fc.nat(40), { freq: 4 }) })
  .map(({ message, flag, length, cut }) => {
    const prefix = Buffer.from([flag, 0, 0, 0, 0]);
    prefix.writeUInt32BE(length ?? message.length, 1);
    return Buffer.concat([prefix, message]).subarray(0, cut ?? undefined);
  }); // prettier-ignore
const hostileCall = fc.record({
  path: paths,
  type: fc.oneof({ weight: 9, arbitrary: fc.constant("application/grpc") }, fc.constantFrom("application/grpc+json", "text/plain", "")),
  metadata,
  frames: fc.oneof({ weight: 8, arbitrary: frames.map((one) => [one]) }, fc.array(frames, { maxLength: 3 })),
  end: fc.constantFrom("end", "end", "end", "reset", "leave"),
}); // prettier-ignore
const inferring = (message, more) => ({ path: infer, type: "application/grpc", metadata: {}, frames: [framed(message)], end: "end", ...more }); // prettier-ignore
const call = fc.oneof({ weight: 5, arbitrary: hostileCall }, fc.constant(inferring(good)));

/** A text of JSON as an item, in its contents or raw: it comes back, or is refused. */
const hostileText = fc.tuple(hostileJson, fc.boolean()).map(([value, isRaw]) => {
  const isKept = outcomeOf(value) === "kept";
  const part = isKept ? JSON.stringify(JSON.parse(value.text)) : "";
  return inferring(textMessage(value.text, isRaw), { expected: { status: isKept ? "0" : "3", part } });
});

const axes = fc.constantFrom(
  -1n,
  0n,
  1n,
  3n,
  4n,
  2n ** 31n,
  2n ** 32n,
  2n ** 53n + 1n,
  2n ** 62n,
  2n ** 63n - 1n,
  -(2n ** 63n),
);
const hostileShape = fc.oneof({ weight: 4, arbitrary: fc.array(axes, { maxLength: 4 }) }, fc.constant([1n, 3n])).map((shape) =>
  inferring(shapedMessage(shape), { expected: { status: shape.join() === "1,3" ? "0" : "3", part: "" } }),
); // prettier-ignore

const hostileHost = fc
  .constantFrom("localhost", "127.0.0.1:1", "[::1]", "evil.example", "localhost.evil.example", "10.0.0.1")
  .map((host) => {
    const isLocal = /^(?:localhost|127\.0\.0\.1:1|\[::1\])$/.test(host);
    return inferring(good, { metadata: { ":authority": host }, expected: { status: isLocal ? "0" : "7", part: "" } });
  });
