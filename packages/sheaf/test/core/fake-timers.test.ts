import assert from "node:assert/strict";
import { mock, test } from "node:test";
import FakeTimers from "@sinonjs/fake-timers";
import { DataLoader } from "../../dist/adapters/dataloader/index.js";
import { createBatcher, fixedWindow } from "../../dist/index.js";
import { assertCode, watch } from "../support/rig.js";

const realTurn = setImmediate;
const turn = (): Promise<void> => new Promise((resolve) => realTurn(resolve));

/** Fake timers as test runners turn them on: sinon's are those of vitest and jest; `node:test` leaves `performance` real. */
const kinds = {
  "vitest's and jest's fake timers": () => {
    // The runner of this test needs `nextTick` itself.
    const clock = FakeTimers.install({ toNotFake: ["nextTick", "queueMicrotask"] });
    return { advance: (ms: number) => clock.tickAsync(ms), restore: () => clock.uninstall() };
  },
  "node:test's mock timers": () => {
    mock.timers.enable({ apis: ["setTimeout", "setInterval", "setImmediate", "Date"] });
    // A batcher decides at the end of a turn; a window's timer starts then.
    const advance = async (ms: number): Promise<void> => {
      await turn();
      await turn();
      mock.timers.tick(ms);
      await turn();
    };
    return { advance, restore: () => mock.timers.reset() };
  },
};

for (const [kind, install] of Object.entries(kinds)) {
  const faked = (name: string, run: (advance: (ms: number) => Promise<unknown>) => Promise<void>): void =>
    test(`${kind}: ${name}`, async () => {
      const { advance, restore } = install();
      try {
        await run(advance);
      } finally {
        restore();
      }
    }) as unknown as void;

  faked("a call answers without any time passing", async () => {
    const double = createBatcher((items: number[]) => items.map((item) => 2 * item));
    assert.equal(await double(1), 2);
    assert.deepEqual(await Promise.all([double(2), double(3)]), [4, 6]);
    const loader = new DataLoader<number, number>(async (keys) => keys);
    assert.deepEqual(await Promise.all([loader.load(1), loader.load(2)]), [1, 2]);
  });

  faked("a window ends when its time has passed, and not before", async (advance) => {
    const echo = createBatcher((items: number[]) => items, { policy: fixedWindow(), maxWaitMs: 60_000 });
    const call = watch(echo(1));
    await advance(59_000);
    assert.equal(call.status, "pending");
    await advance(1000);
    await turn();
    assert.equal(call.value, 1);
  });

  faked("a call's timeout and a rate limit follow", async (advance) => {
    const never = createBatcher(() => new Promise<number[]>(() => {}));
    const call = watch(never(1, { timeoutMs: 60_000 }));
    await advance(60_000);
    await turn();
    assertCode(call, "TIMEOUT");

    const slow = createBatcher((items: number[]) => items, { rateLimit: { runs: 1, perMs: 60_000 }, maxBatchSize: 1 });
    const calls = [watch(slow(1)), watch(slow(2))];
    await turn();
    await advance(0);
    assert.deepEqual(
      calls.map((one) => one.value),
      [1, undefined],
    );
    await advance(60_000);
    await turn();
    assert.equal(calls[1]!.value, 2);
  });

  faked("a batcher made before goes on under them and after them", async (advance) => {
    const echo = beforeAll;
    const call = watch(echo(1));
    await advance(5);
    await turn();
    assert.equal(call.value, 1);
  });

  test(`${kind}: real timers serve a batcher again that lived under fake ones`, async () => {
    assert.equal(await beforeAll(2), 2);
  });
}

const beforeAll = createBatcher((items: number[]) => items, { policy: fixedWindow(), maxWaitMs: 5 });
