const { BatcherError, createBatcher, fixedWindow } = require("sheaf");
const { DataLoader } = require("sheaf/adapters/dataloader");

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

test("calls answer under fake timers, in one batch", async () => {
  const sizes = [];
  const echo = createBatcher((items) => (sizes.push(items.length), items));
  expect(await Promise.all([echo(1), echo(2)])).toEqual([1, 2]);
  expect(sizes).toEqual([2]);
  expect(await new DataLoader(async (keys) => keys).load(3)).toBe(3);
});

test("a window and a timeout follow the fake time", async () => {
  const slow = createBatcher((items) => items, { policy: fixedWindow(), maxWaitMs: 60_000 });
  const call = slow(1);
  const hurried = slow(2, { timeoutMs: 1000 }).catch((error) => error);
  await jest.advanceTimersByTimeAsync(60_000);
  expect(await call).toBe(1);
  const error = await hurried;
  expect(error).toBeInstanceOf(BatcherError);
  expect(error.code).toBe("TIMEOUT");
});
