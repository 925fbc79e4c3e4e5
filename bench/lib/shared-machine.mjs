import { createBatcher } from "sheaf";
import { virtualClock } from "sheaf/testing";
import { seededRandom } from "../../packages/sheaf/dist/internal/tuning.js";
import { ShortageGauge } from "../../packages/sheaf/dist/node/pool/cores.js";

/** Work for one thread after the other; all threads that have some share the cores evenly. */
class SharedCores {
  usedMs = 0;
  #clock;
  #cores;
  #threads = new Map();
  #atMs = 0;
  #cancel = () => {};

  /** `neighbours`: cores' worth of threads of other programs that always have work. */
  constructor(clock, cores, neighbours) {
    this.#clock = clock;
    this.#cores = { all: cores, neighbours };
  }

  /** Resolves when `ms` of work are done on a thread, after all that it was given before. */
  work(thread, ms) {
    this.#pass();
    return new Promise((resolve) => {
      if (!this.#threads.has(thread)) this.#threads.set(thread, { jobs: [], usedMs: 0 });
      this.#threads.get(thread).jobs.push({ leftMs: ms, resolve });
      this.#next();
    });
  }

  /** What a thread has used so far. */
  usedBy(thread) {
    this.#pass();
    return this.#threads.get(thread)?.usedMs ?? 0;
  }

  get #busy() {
    return [...this.#threads.values()].filter(({ jobs }) => jobs.length > 0);
  }

  get #speed() {
    const { all, neighbours } = this.#cores;
    return Math.min(1, all / (this.#busy.length + neighbours));
  }

  #pass() {
    const workedMs = (this.#clock.now() - this.#atMs) * this.#speed;
    this.#atMs = this.#clock.now();
    for (const thread of this.#busy) {
      thread.jobs[0].leftMs -= workedMs;
      thread.usedMs += workedMs;
      this.usedMs += workedMs;
    }
  }

  #next() {
    this.#cancel();
    const busy = this.#busy;
    if (busy.length === 0) return;
    const leftMs = Math.min(...busy.map(({ jobs }) => jobs[0].leftMs)) / this.#speed;
    this.#cancel = this.#clock.after(Math.max(0, leftMs), () => {
      this.#pass();
      for (const { jobs } of this.#busy) if (jobs[0].leftMs < 1e-9) jobs.shift().resolve();
      this.#next();
    });
  }
}

/**
 * A server on a machine whose cores its HTTP thread and the runs of its worker share, on a virtual clock: Poisson arrivals
 * through the real batcher. Milliseconds of work: `inMs` and `outMs` a request, `batchMs` a batch on the HTTP thread, `cost`
 * on the worker's; `hopMs` is the time from one thread to the other.
 */
export async function serveOnSharedCores({
  policy,
  ratePerS,
  cores = 2,
  neighbours = 0,
  inMs = 0.15,
  outMs = 0.08,
  batchMs = 0.08,
  hopMs = 0.1,
  cost = (size) => 0.65 + 0.05 * size,
  items = 10_000,
  callers,
  hasGauge = true,
  seed = 1,
}) {
  const clock = virtualClock();
  const machine = new SharedCores(clock, cores, neighbours);
  const gauge = new ShortageGauge(cores);
  let lookedAtMs = 0;
  let used = { all: 0, http: 0 };
  const coreShortage = () => {
    const elapsedMs = clock.now() - lookedAtMs;
    if (!hasGauge || elapsedMs < 50) return gauge.shortage;
    const now = { http: machine.usedBy("http"), all: machine.usedMs };
    gauge.look((now.all - used.all) / elapsedMs, (now.http - used.http) / elapsedMs);
    used = now;
    lookedAtMs = clock.now();
    return gauge.shortage;
  };
  const sizes = [];
  const executor = {
    slots: 1,
    ready: async () => undefined,
    close: async () => undefined,
    coreShortage,
    async run(batch, handle) {
      sizes.push(batch.length);
      await machine.work("http", batchMs / 2);
      await clock.sleep(hopMs);
      const startedAtMs = clock.now();
      await machine.work("worker", cost(batch.length));
      handle.measured(clock.now() - startedAtMs);
      await clock.sleep(hopMs);
      await machine.work("http", batchMs / 2);
      return batch;
    },
  };
  const batcher = createBatcher(executor, { clock, policy, maxBatchSize: 64, maxQueueSize: Infinity });
  await batcher.ready();
  const random = seededRandom(seed);
  const latencies = [];
  const call = async (i) => {
    const startedAtMs = clock.now();
    await machine.work("http", inMs);
    await batcher(i);
    await machine.work("http", outMs);
    if (i >= items / 10) latencies.push(clock.now() - startedAtMs);
  };
  if (callers === undefined)
    for (let i = 0, atMs = 0; i < items; i++)
      clock.at((atMs += (-Math.log(1 - random()) * 1000) / ratePerS), () => void call(i));
  else {
    let next = 0;
    const loop = async () => {
      while (next < items) await call(next++);
    };
    for (let i = 0; i < callers; i++) clock.at(0.01 * i, () => void loop());
  }
  await clock.idle();
  latencies.sort((a, b) => a - b);
  const at = (share) => latencies[Math.ceil(share * latencies.length) - 1];
  return {
    meanMs: latencies.reduce((sum, ms) => sum + ms, 0) / latencies.length,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    cpuMs: machine.usedMs / items,
    size: items / sizes.length,
    perS: (1000 * items) / clock.now(),
  };
}
