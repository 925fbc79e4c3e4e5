import type { Batcher } from "../../core/contract/batcher.ts";
import type { BatchObserver } from "../../core/dispatch/dispatcher.ts";
import type { Batch, Entry } from "../../core/queue/entry.ts";
import { systemClock } from "../../core/runtime/runtime.ts";
import { insideOf, type Inside } from "../../core/wrap-batcher.ts";
import type { BatchRecord } from "../../policies/policy.ts";
import { checkFunction, checkOptions } from "../../shared/checks.ts";
import type { RecordedSettings } from "./lines.ts";

export interface RecordOptions {
  /**
   * Calls so far that a cache in front of the batcher has answered.
   * @default none
   */
  readonly cached?: (() => number) | undefined;
}

/** Above this many calls a second, whole seconds are left out, so that the mean is no higher. */
const maxCallsPerS = 20_000;
/** Tenants that are remembered by number; then their numbers begin anew. */
const maxTenants = 100_000;

/**
 * Records the calls of a batcher: `write` gets a line of JSON for each run, and one for each second with runs. No line holds an
 * input, a result, a key or a tenant's name. Returns a function that ends it.
 * @throws {TypeError} for a batcher whose batches run elsewhere.
 * @experimental It may change in any minor version.
 */
export function recordCalls<In, Out>(
  batcher: Batcher<In, Out>,
  write: (line: string) => void,
  options: RecordOptions = {},
): () => void {
  checkFunction("write", write);
  checkOptions(options, { cached: checkFunction });
  const inside = insideOf(batcher);
  if (inside === undefined)
    throw new TypeError("recordCalls needs a batcher of createBatcher: this one's batches run elsewhere");
  const recorder = new Recorder(batcher.name, inside, write, options.cached);
  inside.observers.push(recorder);
  return () => {
    const place = inside.observers.indexOf(recorder);
    if (place < 0) return;
    inside.observers.splice(place, 1);
    recorder.end();
  };
}

interface Counts {
  readonly refused: number;
  readonly refusedBulk: number;
  readonly left: number;
  readonly timeout: number;
  readonly cached: number;
}

class Recorder implements BatchObserver {
  readonly #name: string;
  readonly #inside: Inside;
  readonly #write: (line: string) => void;
  readonly #cached: () => number;
  readonly #originMs: number;
  readonly #tenants: Map<unknown, number> = new Map();
  #nextTenant = 0;
  #second: number;
  #sinceMs: number;
  #counts: Counts;
  #calls = 0;
  #expiredRunning = 0;
  /** The first second that is recorded again. */
  #fromSecond = 0;

  constructor(name: string, inside: Inside, write: (line: string) => void, cached: () => number = () => 0) {
    this.#name = JSON.stringify(name);
    this.#inside = inside;
    this.#write = write;
    this.#cached = cached;
    const { clock } = inside.settings;
    const nowMs = clock.now();
    this.#originMs = clock === systemClock ? Date.now() - nowMs : 0;
    this.#second = Math.floor(nowMs / 1000);
    this.#sinceMs = nowMs;
    this.#counts = this.#count();
    this.#settle(nowMs);
  }

  observe(record: BatchRecord, nowMs: number, batch: Batch): void {
    const second = Math.floor(nowMs / 1000);
    if (second !== this.#second) this.#turn(second, nowMs);
    if (second < this.#fromSecond) return;
    const { entries } = batch;
    this.#calls += entries.length;
    const { batchId, startedAtMs, runMs, tookMs, inFlight, outcome, failedItems, extraRuns, attempt } = record;
    const isRefused = outcome === "refused";
    let line = `{"run":${batchId},"model":${this.#name},"at":${us(startedAtMs)},"took":${us(runMs)},"held":${us(tookMs)}`;
    if (inFlight !== undefined && inFlight > 1.005) line += `,"inFlight":${Math.round(100 * inFlight) / 100}`;
    if (outcome !== "ok") line += `,"outcome":"${outcome}"`;
    if (failedItems > 0) line += `,"failed":${failedItems}`;
    if (extraRuns > 0 || attempt > 1) line += `,"again":true`;
    this.#write(`${line}${isRefused ? `,"waits":[]` : this.#columns(entries, startedAtMs, nowMs)}}`);
  }

  /** The calls of the last second that joined no run. */
  end(): void {
    const nowMs = this.#inside.settings.clock.now();
    if (Math.floor(nowMs / 1000) >= this.#fromSecond) this.#settle(nowMs);
  }

  #columns(entries: readonly Entry[], startedAtMs: number, nowMs: number): string {
    let waits = "";
    const lanes = new Column("lane", 1);
    const tenants = new Column("tenant", -1);
    const weights = new Column("weight", 1);
    const timeouts = new Column("timeout", 0);
    let [expired, aborted] = ["", ""];
    let shared = 0;
    let lastAtMs = NaN;
    let wait = "";
    for (let place = 0; place < entries.length; place++) {
      const { terms, keys, ties } = entries[place]!;
      const { arrivedAtMs, deadlineAtMs, signal } = terms;
      // Those who came at once waited as long.
      if (arrivedAtMs !== lastAtMs) wait = String(Math.max(0, us(startedAtMs - (lastAtMs = arrivedAtMs))));
      waits += place === 0 ? wait : `,${wait}`;
      lanes.add(place, terms.lane);
      timeouts.add(place, deadlineAtMs === Infinity ? 0 : Math.round(deadlineAtMs - arrivedAtMs));
      if (deadlineAtMs <= nowMs) {
        this.#expiredRunning++;
        expired += `${expired && ","}${place}`;
      } else if (signal?.aborted === true) aborted += `${aborted && ","}${place}`;
      if (keys === undefined) continue;
      weights.add(place, keys.weight);
      if (keys.tenant !== undefined) tenants.add(place, this.#tenant(keys.tenant.key));
      shared += ties?.sharers?.length ?? 0;
    }
    let columns = `,"waits":[${waits}]${lanes.end()}${tenants.end()}${weights.end()}${timeouts.end()}`;
    if (expired !== "") columns += `,"expired":[${expired}]`;
    if (aborted !== "") columns += `,"aborted":[${aborted}]`;
    return shared > 0 ? `${columns},"shared":${shared}` : columns;
  }

  #tenant(key: unknown): number {
    let number = this.#tenants.get(key);
    if (number === undefined) {
      if (this.#tenants.size === maxTenants) this.#tenants.clear();
      this.#tenants.set(key, (number = this.#nextTenant++));
    }
    return number;
  }

  #turn(second: number, nowMs: number): void {
    if (this.#second >= this.#fromSecond) {
      this.#settle(nowMs);
      const overMean = Math.ceil(this.#calls / maxCallsPerS) - 1;
      if (overMean > 0) this.#fromSecond = second + overMean;
    } else if (second >= this.#fromSecond) {
      this.#sinceMs = nowMs;
      this.#counts = this.#count();
      this.#expiredRunning = 0;
    }
    this.#second = second;
    this.#calls = 0;
  }

  #settle(nowMs: number): void {
    const before = this.#counts;
    const now = (this.#counts = this.#count());
    const left = now.left - before.left;
    const expired = Math.min(left, Math.max(0, now.timeout - before.timeout - this.#expiredRunning));
    const counts = {
      refused: now.refused - before.refused,
      refusedBulk: now.refusedBulk - before.refusedBulk,
      expired,
      gaveUp: left - expired,
      cached: now.cached - before.cached,
    };
    const line = {
      sheaf: 1,
      model: JSON.parse(this.#name) as string,
      origin: this.#originMs,
      at: us(nowMs),
      since: us(this.#sinceMs),
      settings: settingsNow(this.#inside),
      ...Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0)),
    };
    this.#write(JSON.stringify(line));
    this.#sinceMs = nowMs;
    this.#expiredRunning = 0;
  }

  #count(): Counts {
    const { tally, leavers, refused } = this.#inside.queue;
    const cached = this.#cached();
    return { refused: refused.live, refusedBulk: refused.bulk, left: leavers.count, timeout: tally.timeout, cached };
  }
}

/** Values of one kind: a list from the first one on that differs. */
class Column {
  readonly #name: string;
  readonly #usual: number;
  #first = 0;
  #values: string | undefined;
  #count = 0;

  constructor(name: string, usual: number) {
    this.#name = name;
    this.#usual = this.#first = usual;
  }

  add(place: number, value: number): void {
    if (this.#values !== undefined) {
      while (this.#count < place) this.#push(this.#usual);
      this.#push(value);
    } else if (place === 0) this.#first = value;
    else if (value !== this.#first) {
      this.#values = `${this.#first}`;
      this.#count = 1;
      while (this.#count < place) this.#push(this.#first);
      this.#push(value);
    }
  }

  end(): string {
    if (this.#values !== undefined) return `,"${this.#name}":[${this.#values}]`;
    return this.#first === this.#usual ? "" : `,"${this.#name}":${this.#first}`;
  }

  #push(value: number): void {
    this.#values += `,${value}`;
    this.#count++;
  }
}

const us = (ms: number): number => Math.round(1000 * ms);

function settingsNow({ settings }: Inside): RecordedSettings {
  const { policy, slots, maxBatchSize, maxWaitMs, maxQueueSize, fairKey } = settings;
  const { maxBatchWeight, batchWeight, timeoutMs, refuseLate, overloadOrder, prefetch } = settings;
  const finite = (value: unknown): number | undefined => (Number.isFinite(value) ? (value as number) : undefined);
  return {
    maxBatchSize: finite(maxBatchSize),
    maxBatchWeight: finite(maxBatchWeight),
    batchWeight,
    maxWaitMs: finite(maxWaitMs),
    concurrency: slots.limit,
    prefetch: prefetch || undefined,
    maxQueueSize: finite(maxQueueSize),
    timeoutMs,
    refuseLate,
    policy: policy.name,
    latencyBudgetMs: policy.latencyBudgetMs,
    overloadOrder,
    hasTenants: fairKey === undefined ? undefined : true,
  };
}
