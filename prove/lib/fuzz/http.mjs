import { fork } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import fc from "fast-check";
import { cases } from "./http-cases.mjs";

const lanes = 16;
const chunk = 1000;
const answerMs = 10_000;

/**
 * Sends `count` seeded cases over real sockets, a good request right after each; `progress` is called every thousand.
 * `warmUp` cases go before it, 1,000 by default. Gives the statuses by kind of case and the server's state before and after.
 * @throws {Error} naming seed and case: a 5xx, no answer, a wrong answer to the good request, or a server that ended.
 */
export async function fuzz({ count, seed, warmUp = chunk, progress = () => undefined }) {
  const child = fork(new URL("server.mjs", import.meta.url), { execArgv: ["--expose-gc"] });
  try {
    const [{ url }] = await once(child, "message");
    // What is compiled and cached by then is not a leak.
    if (warmUp > 0) await run(url, fc.sample(cases(), { seed: seed - 1, numRuns: warmUp }), {}, seed - 1);
    const before = await report(child);
    const statuses = {};
    for (let done = 0; done < count; done += chunk) {
      const seedOfChunk = seed + done;
      const sample = fc.sample(cases(), { seed: seedOfChunk, numRuns: Math.min(chunk, count - done) });
      await run(url, sample, statuses, seedOfChunk);
      progress(done + sample.length);
    }
    await untilIdle(child);
    return { statuses, before, after: await report(child) };
  } finally {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }
}

async function run(url, sample, statuses, seed) {
  let next = 0;
  const lane = async () => {
    for (let i = next++; i < sample.length; i = next++) {
      const { name, slices, end } = sample[i];
      try {
        const text = await exchange(url, slices, end);
        for (const [, status] of text.matchAll(/(?:^|[}\n])HTTP\/1\.1 (\d{3}) /g)) {
          // A deadline that the case asked for can pass on a busy machine.
          const isLate = status === "504" && slices.some((slice) => slice.includes("x-request-timeout-ms"));
          if (Number(status) >= 500 && !isLate) throw new Error(`got ${text.slice(0, 600)}`);
          statuses[name] ??= {};
          statuses[name][status] = (statuses[name][status] ?? 0) + 1;
        }
        await goodRequest(url, i);
      } catch (error) {
        const shown = JSON.stringify(Buffer.concat(slices).toString("latin1").slice(0, 2000));
        throw new Error(`seed ${seed}, case ${i} (${name}): ${error.message}\n${shown}`, { cause: error });
      }
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

/** Everything that comes back before the connection ends. A request that could have a sequel is ended by us. */
async function exchange(url, slices, end) {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: false });
  let text = "";
  socket.setEncoding("latin1").on("data", (data) => (text += data));
  socket.on("error", () => undefined); // A reset is an answer too: the good request tells whether the server lives.
  const closed = new Promise((resolve) => socket.once("close", resolve)); // events.once would reject on a reset.
  await Promise.race([new Promise((resolve) => socket.once("connect", resolve)), closed]);
  for (const slice of slices) {
    socket.write(slice);
    if (slices.length > 1) await new Promise((resolve) => setImmediate(resolve));
  }
  if (end === "destroy") socket.destroy();
  if (end === "end") socket.end();
  const timer = setTimeout(() => socket.destroy(new Error("late")), answerMs);
  let isLate = false;
  socket.once("error", (error) => (isLate = error.message === "late"));
  await closed;
  clearTimeout(timer);
  if (isLate) throw new Error(`no end of the connection within ${answerMs} ms; until then: ${text.slice(0, 200)}`);
  return text;
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

async function report(child) {
  child.send("report");
  return (await once(child, "message"))[0];
}

/** Half-closed uploads are open until the server's upload limit. */
async function untilIdle(child) {
  for (let i = 0; i < 50; i++) {
    const { connections, models } = await report(child);
    if (connections <= lanes && models.every(({ queued, inFlight }) => queued + inFlight === 0)) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
