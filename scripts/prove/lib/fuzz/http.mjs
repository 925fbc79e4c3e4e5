import fc from "fast-check";
import { attack, victim } from "./attack.mjs";
import { cases } from "./http-cases.mjs";

const chunk = 1000;

/**
 * Sends `count` seeded cases over real sockets, a good request right after each; `progress` is called every thousand.
 * `warmUp` cases go before it, 1,000 by default. Gives the statuses (`ends`) by kind of case, and the server's state before
 * and after.
 * @throws {Error} naming seed and case: a 5xx, no answer, a wrong reply or one to the good request, or a server that ended.
 */
export async function fuzz({ count, seed, warmUp = chunk, progress = () => undefined }) {
  const server = await victim("server.mjs");
  const { url } = server;
  const good = (number) => goodRequest(url, number);
  try {
    // What is compiled and cached by then is not a leak.
    if (warmUp > 0)
      await attack(url, fc.sample(cases(), { seed: seed - 1, numRuns: warmUp }), {
        seed: seed - 1,
        ends: {},
        good,
      });
    const before = await server.report();
    const ends = {};
    for (let done = 0; done < count; done += chunk) {
      const seedOfChunk = seed + done;
      const sample = fc.sample(cases(), { seed: seedOfChunk, numRuns: Math.min(chunk, count - done) });
      await attack(url, sample, { seed: seedOfChunk, ends, good });
      progress(done + sample.length);
    }
    await server.untilIdle();
    return { ends, before, after: await server.report() };
  } finally {
    await server.end();
  }
}

async function goodRequest(url, number) {
  const body = JSON.stringify([number, 2 * number, -number]);
  const response = await fetch(`${url}/infer`, {
    method: "POST",
    body,
    headers: { "content-type": "application/json" },
  });
  const { output } = await response.json();
  const expected = JSON.stringify([number / 2, number, -number / 2]);
  const got = JSON.stringify(output?.map((value) => value + 0));
  if (response.status !== 200 || got !== JSON.stringify(JSON.parse(expected).map((value) => value + 0)))
    throw new Error(`the good request after it got ${response.status} ${got}, not ${expected}`);
}
