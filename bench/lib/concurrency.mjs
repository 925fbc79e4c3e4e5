import { createBatcher } from "sheaf";
import { virtualClock } from "sheaf/testing";
import { seededRandom } from "../../packages/sheaf/dist/internal/tuning.js";

/**
 * A service whose parallelism nobody is told: a run of n items takes `networkMs`, which nothing shares, and the work
 * `fixedMs + perItemMs · n` on `places` servers. Beyond so many runs they share the servers equally, and each run above adds
 * `drag` to the work of all. `scatter`: coefficient of variation of a run's work.
 */
export const namedServices = [
  {
    name: "one GPU stream",
    networkMs: 0,
    fixedMs: 10,
    perItemMs: 0.3,
    maxBatchSize: 32,
    places: 1,
    drag: 0,
    scatter: 0,
  },
  { name: "two cores", networkMs: 0, fixedMs: 5, perItemMs: 0.5, maxBatchSize: 32, places: 2, drag: 0.1, scatter: 0 },
  {
    name: "embedding API",
    networkMs: 150,
    fixedMs: 30,
    perItemMs: 3,
    maxBatchSize: 100,
    places: 32,
    drag: 0,
    scatter: 0,
  },
  { name: "small API", networkMs: 80, fixedMs: 20, perItemMs: 2, maxBatchSize: 16, places: 8, drag: 0, scatter: 0 },
  { name: "database", networkMs: 1, fixedMs: 6, perItemMs: 0.4, maxBatchSize: 100, places: 8, drag: 0.1, scatter: 0 },
];

/** `count` services drawn at random; a seed not used before is a test unseen. */
export function drawnServices(seed, count) {
  const random = seededRandom(seed);
  const pick = (choices) => choices[Math.floor(random() * choices.length)];
  const between = (low, high) => low * (high / low) ** random();
  const services = [];
  while (services.length < count) {
    const places = pick([1, 1, 2, 2, 3, 4, 6, 8, 8, 12, 16, 24, 32, 48]);
    const maxBatchSize = pick([8, 16, 32, 32, 64, 100, 128]);
    const workMs = between(8, 400);
    const fixedShare = between(0.1, 0.9);
    const networkMs = pick([0, 0, 1]) * workMs * between(0.1, 4) * pick([1, 1, 0.3]);
    const service = {
      networkMs,
      fixedMs: workMs * fixedShare,
      perItemMs: (workMs * (1 - fixedShare)) / maxBatchSize,
      maxBatchSize,
      places,
      drag: pick([0, 0, 0.05, 0.1, 0.15]),
      scatter: pick([0, 0.1, 0.3]),
    };
    // What one process can call, and a bench can simulate.
    if (capacityPerMs(service) > 3) continue;
    const shown = (number) => Number(number.toPrecision(2));
    const parts = `${shown(networkMs)} + (${shown(service.fixedMs)} + ${shown(service.perItemMs)} n)`;
    services.push({
      ...service,
      name: `${parts}, B ${maxBatchSize}, K ${places}, drag ${service.drag}, ±${service.scatter}`,
    });
  }
  return services;
}

/** Items a millisecond with every place busy with full batches. */
export const capacityPerMs = ({ fixedMs, perItemMs, maxBatchSize, places }) =>
  (places * maxBatchSize) / (fixedMs + perItemMs * maxBatchSize);

/** The service on a virtual clock: `run(items)` resolves when a run of so many has ended. `places` may be changed. */
export class SimulatedService {
  constructor(clock, service, seed) {
    this.clock = clock;
    this.service = service;
    this.places = service.places;
    this.inFlight = 0;
    this.random = seededRandom(seed);
    /** Runs at work by the work at which they end, the next one last. */
    this.runs = [];
    this.done = 0;
    this.atMs = 0;
    this.cancel = undefined;
  }

  async run(size) {
    const { networkMs, fixedMs, perItemMs, scatter } = this.service;
    this.inFlight++;
    const variance = Math.log1p(scatter ** 2);
    const factor = scatter === 0 ? 1 : Math.exp(Math.sqrt(variance) * this.normal() - variance / 2);
    if (networkMs > 0) await this.clock.sleep(networkMs / 2);
    await new Promise((resolve) => this.add((fixedMs + perItemMs * size) * factor, resolve));
    if (networkMs > 0) await this.clock.sleep(networkMs / 2);
    this.inFlight--;
  }

  normal() {
    return Math.sqrt(-2 * Math.log(1 - this.random())) * Math.cos(2 * Math.PI * this.random());
  }

  /** Work done on each run a millisecond. */
  get rate() {
    const above = Math.max(0, this.runs.length - this.places);
    return Math.min(1, this.places / this.runs.length) / (1 + this.service.drag * above);
  }

  add(work, resolve) {
    this.advance();
    const run = { endsAt: this.done + work, resolve };
    let at = this.runs.length;
    while (at > 0 && this.runs[at - 1].endsAt < run.endsAt) at--;
    this.runs.splice(at, 0, run);
    this.arm();
  }

  advance() {
    const nowMs = this.clock.now();
    if (this.runs.length > 0) this.done += this.rate * (nowMs - this.atMs);
    this.atMs = nowMs;
  }

  arm() {
    this.cancel?.();
    this.cancel = undefined;
    if (this.runs.length === 0) return;
    const leftMs = Math.max(0, this.runs.at(-1).endsAt - this.done) / this.rate;
    this.cancel = this.clock.after(leftMs, () => {
      this.advance();
      const next = this.runs.pop();
      this.done = Math.max(this.done, next.endsAt);
      next.resolve();
      this.arm();
    });
  }

  setPlaces(places) {
    this.advance();
    this.places = places;
    this.arm();
  }
}

/**
 * Poisson calls at `load` of the service's capacity for `lastsMs`; calls in the first `startMs` are not counted.
 * `batchers`: this many share the calls; `steps`: [atMs, places, load], where without a load it stays; `onEnd(batcher)` is called when a batch has ended, and
 * `onLook(atMs, ...batchers)` every `lookEveryMs`.
 */
export async function trial({
  service,
  load,
  lastsMs,
  startMs,
  seed,
  options = {},
  batchers: count = 1,
  steps = [],
  onEnd,
  onLook,
  lookEveryMs = 1000,
}) {
  const clock = virtualClock();
  const simulated = new SimulatedService(clock, service, seed ^ 0x51ab3c);
  const random = seededRandom(seed);
  const { maxBatchSize } = service;
  const run = async (items) => {
    await simulated.run(items.length);
    return items;
  };
  const batchers = Array.from({ length: count }, () => createBatcher(run, { maxBatchSize, clock, ...options }));
  let perMs = load * capacityPerMs(service);
  for (const [atMs, places, next = load] of steps)
    clock.at(atMs, () => {
      simulated.setPlaces(places);
      perMs = next * capacityPerMs(service);
    });
  const latencies = [];
  let lost = 0;
  let counted = 0;
  if (onEnd !== undefined) for (const batcher of batchers) batcher.subscribe(() => onEnd(batcher));
  const call = () => {
    const atMs = clock.now();
    const isCounted = atMs >= startMs;
    if (isCounted) counted++;
    batchers[count === 1 ? 0 : Math.floor(count * random())](0).then(
      () => void (isCounted && latencies.push(clock.now() - atMs)),
      () => void (isCounted && lost++),
    );
  };
  let atMs = 0;
  const arm = () => {
    atMs += -Math.log(1 - random()) / perMs;
    if (atMs > lastsMs) return;
    clock.at(atMs, () => {
      call();
      arm();
    });
  };
  arm();
  if (onLook !== undefined)
    for (let lookAtMs = 0; lookAtMs <= lastsMs; lookAtMs += lookEveryMs)
      clock.at(lookAtMs, () => onLook(lookAtMs, ...batchers));
  await clock.idle();
  let sum = 0;
  for (const ms of latencies) sum += ms;
  latencies.sort((a, b) => a - b);
  const p99Ms = latencies[Math.floor(0.99 * latencies.length)] ?? NaN;
  return { meanMs: sum / latencies.length, p99Ms, lost: lost / counted };
}
