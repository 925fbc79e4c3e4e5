// What the attacks over HTTP and on the proxy have in common: raw connections, lanes, and a process under attack.
import { fork } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";

export const lanes = 16;
const answerMs = 10_000;

/** Starts a file of this folder as the process under attack. */
export async function victim(file, ...words) {
  const child = fork(new URL(file, import.meta.url), words, { execArgv: ["--expose-gc"] });
  const [addresses] = await once(child, "message");
  const report = async () => {
    child.send("report");
    return (await once(child, "message"))[0];
  };
  return {
    ...addresses,
    report,
    /** Half-closed uploads are open until the server's upload limit. */
    async untilIdle() {
      for (let i = 0; i < 50; i++) {
        const { connections, models = [] } = await report();
        if (connections <= lanes && models.every(({ queued, inFlight }) => queued + inFlight === 0)) return;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    },
    async end() {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
  };
}

/**
 * Sends the cases over sockets, `good(i)` right after each, and counts statuses by kind of case in `ends`. A case may
 * have a `check`, which gets the reply and says what is wrong with it.
 * @throws {Error} naming seed and case: a 5xx, no answer, a wrong reply, or a good request that failed.
 */
export async function attack(url, sample, { seed, ends, good }) {
  let next = 0;
  const lane = async () => {
    for (let i = next++; i < sample.length; i = next++) {
      const { name, slices, end, check } = sample[i];
      try {
        const text = await exchange(url, slices, end);
        for (const [, status] of text.matchAll(/(?:^|[}\n])HTTP\/1\.1 (\d{3}) /g)) {
          // A deadline that the case asked for can pass on a busy machine.
          const isLate = status === "504" && slices.some((slice) => slice.includes("x-request-timeout-ms"));
          if (Number(status) >= 500 && !isLate) throw new Error(`got ${text.slice(0, 600)}`);
          ends[name] ??= {};
          ends[name][status] = (ends[name][status] ?? 0) + 1;
        }
        const wrong = check?.(text);
        if (wrong !== undefined) throw new Error(`${wrong}, got ${text.slice(0, 600)}`);
        await good(i);
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

/** A request that ends its connection; a `check` reads its only reply. */
export function posting(path, body, headers = []) {
  const bytes = Buffer.from(body);
  const lines = [
    `POST ${path} HTTP/1.1`,
    ...(headers.some((line) => line.startsWith("host:")) ? [] : ["host: localhost"]),
  ];
  lines.push("connection: close", "content-type: application/json", `content-length: ${bytes.length}`, ...headers);
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`), bytes]);
}

/** A `check` of the status, a pattern, and of a part of the body. */
export const expecting =
  (status, part = "") =>
  (text) =>
    new RegExp(`^HTTP/1\\.1 ${status} `).test(text) && Buffer.from(text, "latin1").includes(part)
      ? undefined
      : `expected ${status}${part === "" ? "" : ` with ${part.slice(0, 200)}`}`;
