import { mixedCalls } from "../mixed-calls.mjs";
import { JumpingClock } from "./clock.mjs";
import { Ledger } from "./ledger.mjs";

/** How many times as many calls come in a storm. */
const surge = 10;

/**
 * Every feature of the batcher at once in this process, through storms of calls, on a clock that jumps ahead: as after a sleep of
 * the machine.
 */
export async function chaosInProcess({ seconds, draw }) {
  const clock = new JumpingClock();
  const ledger = new Ledger();
  const faults = {};
  const { batchers, make } = mixedCalls({
    random: () => draw.between(0, 1),
    clock,
    begun: (items) => ledger.send(`items ${items.map(({ id }) => id).slice(0, 5)}`, 30_000),
  });
  const endsAtMs = performance.now() + 1000 * seconds;
  let stormEndsAtMs = -Infinity;
  while (performance.now() < endsAtMs) {
    if (draw.chance(0.0005)) {
      stormEndsAtMs = performance.now() + draw.between(1000, 5000);
      faults["storm of calls"] = (faults["storm of calls"] ?? 0) + 1;
    }
    const calls = 4 * (performance.now() < stormEndsAtMs ? surge : 1);
    for (let call = 0; call < calls; call++) make();
    if (draw.chance(0.003)) {
      const ms = Math.round(10 ** draw.between(1, 6.5));
      const size = ms < 1000 ? "below a second" : ms < 60_000 ? "below a minute" : "up to an hour";
      faults[`clock jumps ${size}`] = (faults[`clock jumps ${size}`] ?? 0) + 1;
      clock.jump(ms);
    }
    if (draw.chance(0.005)) void draw.of(batchers).flush();
    if (draw.chance(0.002)) void draw.of(batchers).drain();
    await new Promise((resolve) => setTimeout(resolve, 8));
  }
  // A map in progress fails when its batcher closes: first everything must have ended.
  while (ledger.open > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  await Promise.all(batchers.map((batcher) => batcher.close()));
  return { name: "batcher on a jumping clock", ledger, faults };
}
