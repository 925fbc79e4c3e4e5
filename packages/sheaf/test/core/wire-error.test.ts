import assert from "node:assert/strict";
import { test } from "node:test";
import {
  abridged,
  describeError,
  isWireError,
  rebuildError,
  type WireError,
} from "../../dist/core/contract/wire-error.js";
import { BatcherError } from "../../dist/index.js";

/** As NATS carries it. */
const throughJson = (thrown: unknown): Error =>
  rebuildError(JSON.parse(JSON.stringify(describeError(thrown))) as WireError);
/** As a worker thread carries it. */
const throughClone = (thrown: unknown): Error => rebuildError(structuredClone(describeError(thrown)));

const own = (error: Error): object => Object.fromEntries(Object.entries(error));

for (const [border, there] of Object.entries({ throughJson, throughClone })) {
  test(`an error keeps its class, message, stack, plain properties and cause (${border})`, () => {
    const error = Object.assign(new RangeError("too long", { cause: new TypeError("deep") }), {
      code: "LONG",
      itemIndex: 2,
      socket: {},
    });
    const rebuilt = there(error);
    assert.ok(rebuilt instanceof RangeError);
    assert.ok(rebuilt.cause instanceof TypeError);
    assert.deepEqual(own(rebuilt), { code: "LONG", itemIndex: 2 });
    assert.deepEqual([rebuilt.message, rebuilt.stack], [error.message, error.stack]);
  });

  test(`a BatcherError keeps its class and the plain values of its details (${border})`, () => {
    const rebuilt = there(new BatcherError("RUN_TIMEOUT", "late", { runTimeoutMs: 5, big: 1n, held: {} }));
    assert.ok(rebuilt instanceof BatcherError);
    assert.deepEqual([rebuilt.code, rebuilt.details], ["RUN_TIMEOUT", { runTimeoutMs: 5 }]);
  });

  test(`what is thrown without being an error becomes one, with its own fields (${border})`, () => {
    assert.equal(there("no").message, "Thrown: no");
    assert.deepEqual(own(there({ status: 429, message: "slow down" })), { status: 429 });
    assert.equal(there({ status: 429, message: "slow down" }).message, "slow down");
    assert.ok(there(undefined) instanceof Error);
  });

  test(`an error whose getters throw, or whose causes form a circle, still arrives (${border})`, () => {
    const getter = Object.defineProperty(new Error("x"), "worse", { enumerable: true, get: () => assert.fail("no") });
    assert.match(there(getter).message, /cannot be read/);
    const circle = new Error("round");
    circle.cause = circle;
    assert.equal((there(circle).cause as Error).message, "round");
  });
}

test("an untrusted description does no harm: what does not fit is left out", () => {
  const description = JSON.parse(
    `{"name":"constructor","message":"m","plain":{"__proto__":1,"name":"x","held":{}},"details":5,"cause":{"name":1},"stack":{}}`,
  ) as unknown;
  assert.ok(isWireError(description));
  const rebuilt = rebuildError(description);
  assert.ok(rebuilt instanceof Error);
  assert.deepEqual([rebuilt.name, rebuilt.message, own(rebuilt), rebuilt.cause], ["constructor", "m", {}, undefined]);
  for (const other of [null, "x", {}, { name: "Error" }, { name: 5, message: "m" }]) assert.ok(!isWireError(other));
});

test("an abridged error keeps its name, the start of its message and its short properties", () => {
  const long = "n".repeat(2_000_000);
  const { name, message, plain } = abridged(describeError(Object.assign(new RangeError(long), { code: "LONG", long })));
  assert.deepEqual([name, message.length < 1000, plain], ["RangeError", true, { code: "LONG" }]);
});

test("the texts of an error have a bound", () => {
  const long = "x".repeat(1_000_000);
  const error = Object.assign(new Error(long, { cause: new RangeError(long) }), { code: long, name: long });
  const wire = describeError(error);
  for (const text of [
    wire.name,
    wire.message,
    wire.stack,
    wire.plain?.["code"],
    wire.cause?.message,
    describeError(long).message,
  ])
    assert.match(text as string, /^.{8192}… \(\d+ characters\)$/su);
});
