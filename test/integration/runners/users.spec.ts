import { createBatcher } from "sheaf";
import { manualClock } from "sheaf/testing";
import { UsersService } from "./users.service";

test("calls at the same time share a query, and each has its own outcome", async () => {
  const users = new UsersService();
  const [ada, nobody] = await Promise.allSettled([users.get(1), users.get(-1)]);
  expect(ada).toEqual({ status: "fulfilled", value: "user 1" });
  expect(nobody.status).toBe("rejected");
  expect(users.queries).toEqual([[1, -1]]);
});

test("fake timers end a call that takes too long", async () => {
  jest.useFakeTimers();
  const never = createBatcher(() => new Promise<number[]>(() => {}), { timeoutMs: 5000 });
  const outcome = never(1).catch((error: unknown) => error);
  await jest.advanceTimersByTimeAsync(5000);
  expect(UsersService.isTimeout(await outcome)).toBe(true);
  jest.useRealTimers();
});

test("a batcher may have a clock of its own", async () => {
  const clock = manualClock();
  const double = createBatcher((numbers: number[]) => numbers.map((n) => 2 * n), { clock, maxWaitMs: 50 });
  const result = double(21);
  await clock.advanceAsync(50);
  expect(await result).toBe(42);
});
