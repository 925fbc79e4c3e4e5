import { createBatcher, fixedWindow } from "sheaf";
import { DataLoader } from "sheaf/adapters/dataloader";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("calls answer under fake timers, in one batch", async () => {
  const sizes = [];
  const echo = createBatcher((items) => (sizes.push(items.length), items));
  expect(await Promise.all([echo(1), echo(2)])).toEqual([1, 2]);
  expect(sizes).toEqual([2]);
  expect(await new DataLoader(async (keys) => keys).load(3)).toBe(3);
});

test("windows, timeouts and rate limits follow the fake time", async () => {
  const slow = createBatcher((items) => items, { policy: fixedWindow(), maxWaitMs: 60_000 });
  const call = slow(1);
  const hurried = expect(slow(2, { timeoutMs: 1000 })).rejects.toMatchObject({ code: "TIMEOUT" });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await call).toBe(1);
  await hurried;

  const limited = createBatcher((items) => items, { rateLimit: { runs: 1, perMs: 60_000 }, maxBatchSize: 1 });
  const calls = [limited(1), limited(2)];
  await vi.advanceTimersByTimeAsync(0);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await Promise.all(calls)).toEqual([1, 2]);
});
