import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { artifacts, pythonFolder } from "./paths.mjs";
import { cpuSeconds, marked, marker, pssMib } from "./processes.mjs";

const readyWithinMs = 120_000;
const stopWithinMs = 10_000;
const callWithinMs = 5000;

// A server of several processes, some of them daemons, must not outlive a comparison that fails or is interrupted.
const running = new Set();
process.once("exit", () => {
  for (const mark of running) end(marked(mark), "SIGKILL");
});
process.once("SIGINT", () => process.exit(130));
process.once("SIGTERM", () => process.exit(143));

/**
 * Starts a server and waits until it answers `values` with `expected` in each of its formats: a server that is fast and
 * wrong is not measured.
 * @throws {Error} with the end of its log where it ends, is not ready within two minutes, or answers something else.
 */
export async function startServer(name, { start, formats }, values, expected) {
  const port = await freePort();
  const { file, args, env = {} } = start(String(port));
  const mark = randomUUID();
  running.add(mark);
  mkdirSync(`${artifacts}/logs`, { recursive: true });
  const log = `${artifacts}/logs/${name}.log`;
  const output = openSync(log, "w");
  // The folder of the Python files is where some of them look for their settings.
  const child = spawn(file, args, {
    cwd: pythonFolder,
    env: { ...process.env, ...env, [marker]: mark },
    stdio: ["ignore", output, output],
    detached: true,
  });
  closeSync(output);
  let failure;
  child.once("error", (error) => (failure = error.message));
  child.once("exit", (code, signal) => (failure ??= `it ended with ${signal ?? `code ${code}`}`));
  const server = {
    port,
    formats,
    cpuSeconds: () => cpuSeconds(marked(mark)),
    pssMib: () => pssMib(marked(mark)),
    stop: () => stop(mark),
  };
  try {
    const untilMs = performance.now() + readyWithinMs;
    for (const format of Object.values(formats)) {
      let problem = await problemOf(format, port, values, expected);
      while (problem !== undefined) {
        if (failure === undefined && performance.now() > untilMs) failure = `not ready in time: ${problem}`;
        if (failure !== undefined)
          throw new Error(`${name}: ${failure}. Its log ends:\n${readFileSync(log, "utf8").slice(-3000)}`);
        await sleep(100);
        problem = await problemOf(format, port, values, expected);
      }
    }
  } catch (error) {
    await server.stop();
    throw error;
  }
  return server;
}

/** Why this format's answer is not the right one yet. */
async function problemOf({ path, request, output, tolerance = 1e-4 }, port, values, expected) {
  try {
    const { headers, body } = request(values);
    const signal = AbortSignal.timeout(callWithinMs);
    const reply = await fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", headers, body, signal });
    const bytes = Buffer.from(await reply.arrayBuffer());
    if (reply.status !== 200) return `${reply.status} ${bytes.toString("utf8").slice(0, 300)}`;
    const got = output(bytes);
    const isRight =
      got.length === expected.length && got.every((value, i) => Math.abs(value - expected[i]) < tolerance);
    return isRight ? undefined : `a wrong answer: ${got.slice(0, 4).join(", ")} …`;
  } catch (error) {
    return `${error.message} ${error.cause?.message ?? ""}`;
  }
}

/** Asks each of its processes to end, and after a while makes the rest. */
async function stop(mark) {
  const untilMs = performance.now() + stopWithinMs;
  for (let signal = "SIGTERM"; ; signal = performance.now() < untilMs ? 0 : "SIGKILL") {
    const pids = marked(mark);
    if (pids.length === 0) break;
    end(pids, signal);
    await sleep(100);
  }
  running.delete(mark);
}

function end(pids, signal) {
  for (const pid of pids) {
    try {
      process.kill(Number(pid), signal);
    } catch {
      // It has just ended.
    }
  }
}

/** A port that was free a moment ago. */
async function freePort() {
  const probe = createServer();
  await new Promise((resolve, reject) => probe.once("error", reject).listen(0, "127.0.0.1", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
