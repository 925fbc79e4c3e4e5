import type { Call } from "../../adapters/nats/front-end/call.ts";
import type { FrontEndInside } from "../../adapters/nats/front-end/front-end.ts";
import type { AnswerObserver } from "../../adapters/nats/front-end/pending-calls.ts";
import type { ReplyHead } from "../../adapters/nats/wire/envelope.ts";
import type { Batcher } from "../../core/contract/batcher.ts";
import { priorities } from "../../core/contract/settings.ts";
import type { BatchObserver } from "../../core/dispatch/dispatcher.ts";
import type { Batch, Entry } from "../../core/queue/entry.ts";
import { systemClock, type Clock } from "../../core/runtime/runtime.ts";
import { insideOf, type Inside } from "../../core/wrap-batcher.ts";
import type { BatchRecord } from "../../policies/policy.ts";
import { checkFunction, checkOptions } from "../../shared/checks.ts";
import { recordedSettings, type RecordedSettings } from "../../shared/recorded-settings.ts";

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
 * @throws {TypeError} for a batcher whose batches run elsewhere, but for a front end of a fleet.
 * @experimental It may change in any minor version.
 */
export function recordCalls<In, Out>(
  batcher: Batcher<In, Out>,
  write: (line: string) => void,
  options: RecordOptions = {},
): () => void {
  checkFunction("write", write);
  checkOptions(options, { cached: checkFunction });
  const inside = insideOf(batcher) as Inside | FrontEndInside | undefined;
  if (inside === undefined)
    throw new TypeError("recordCalls needs a batcher of createBatcher: this one's batches run elsewhere");
  const source = "queue" in inside ? batcherOf(inside) : fleetOf(inside);
  const recorder = new Recorder(batcher.name, source, write, options.cached);
  const observers: unknown[] = inside.observers;
  observers.push(recorder);
  return () => {
    const place = observers.indexOf(recorder);
    if (place < 0) return;
    observers.splice(place, 1);
    recorder.end();
  };
}

/** What is looked at once a second. */
interface Source {
  readonly clock: Clock;
  readonly settings: () => RecordedSettings;
  readonly counts: () => Omit<Counts, "cached">;
}

const batcherOf = ({ settings, queue: { tally, leavers, refused } }: Inside): Source => ({
  clock: settings.clock,
  settings: () => recordedSettings(settings),
  counts: () => ({ refused: refused.live, refusedBulk: refused.bulk, left: leavers.count, timeout: tally.timeout }),
});

function fleetOf({ clock, settings, workers, counts }: FrontEndInside): Source {
  let known: RecordedSettings = { policy: "unknown", concurrency: 1 };
  return {
    clock,
    settings() {
      const [first] = workers();
      const concurrency = workers().reduce((sum, { slots }) => sum + slots, 0);
      // They stay known when all workers have gone.
      if (first?.settings !== undefined)
        known = { ...first.settings, maxBatchSize: first.maxBatchSize, concurrency, ...settings };
      return known;
    },
    counts() {
      const { items, lanes } = counts();
      const { timeout, aborted, rejected } = items;
      const refusedBulk = lanes?.bulk.rejected ?? 0;
      return { refused: rejected - refusedBulk, refusedBulk, left: timeout + aborted, timeout };
    },
  };
}

interface Counts {
  readonly refused: number;
  readonly refusedBulk: number;
  readonly left: number;
  readonly timeout: number;
  readonly cached: number;
}

class Recorder implements BatchObserver, AnswerObserver {
  readonly #name: string;
  readonly #source: Source;
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

  /** The run of the last answers of a fleet: each is a call of its own. */
  #answers: Answers | undefined;

  constructor(name: string, source: Source, write: (line: string) => void, cached: () => number = () => 0) {
    this.#name = JSON.stringify(name);
    this.#source = source;
    this.#write = write;
    this.#cached = cached;
    const { clock } = source;
    const nowMs = clock.now();
    this.#originMs = clock === systemClock ? Date.now() - nowMs : 0;
    this.#second = Math.floor(nowMs / 1000);
    this.#sinceMs = nowMs;
    this.#counts = this.#count();
    this.#settle(nowMs);
  }

  observe(record: BatchRecord, nowMs: number, batch: Batch): void {
    if (!this.#isRecorded(nowMs)) return;
    const { entries } = batch;
    this.#calls += entries.length;
    const { batchId, startedAtMs, runMs, tookMs, outcome, failedItems, extraRuns, attempt } = record;
    const isRefused = outcome === "refused";
    let line = `{"run":${batchId},"model":${this.#name},"at":${us(startedAtMs)},"took":${us(runMs)},"held":${us(tookMs)}`;
    if (outcome !== "ok") line += `,"outcome":"${outcome}"`;
    if (failedItems > 0) line += `,"failed":${failedItems}`;
    if (extraRuns > 0 || attempt > 1) line += `,"again":true`;
    this.#write(`${line}${isRefused ? `,"waits":[]` : this.#columns(entries, startedAtMs, nowMs)}}`);
  }

  answered(call: Call, head: ReplyHead, nowMs: number): void {
    if (!this.#isRecorded(nowMs)) return;
    this.#calls++;
    if (this.#answers?.add(call, head) === true) return;
    this.#writeAnswers();
    this.#answers = new Answers(call, head, nowMs);
  }

  /** The calls of the last second that joined no run. */
  end(): void {
    const nowMs = this.#source.clock.now();
    if (Math.floor(nowMs / 1000) >= this.#fromSecond) this.#settle(nowMs);
  }

  #isRecorded(nowMs: number): boolean {
    const second = Math.floor(nowMs / 1000);
    if (second !== this.#second) this.#turn(second, nowMs);
    return second >= this.#fromSecond;
  }

  #writeAnswers(): void {
    if (this.#answers !== undefined) this.#write(this.#answers.line(this.#name));
    this.#answers = undefined;
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
    this.#writeAnswers();
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
      settings: this.#source.settings(),
      ...Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0)),
    };
    this.#write(JSON.stringify(line));
    this.#sinceMs = nowMs;
    this.#expiredRunning = 0;
  }

  #count(): Counts {
    return { ...this.#source.counts(), cached: this.#cached() };
  }
}

/** Calls of one run of a fleet that were answered one after the other. */
class Answers {
  readonly #head: ReplyHead;
  readonly #startedAtMs: number;
  readonly #lanes = new Column("lane", 1);
  readonly #timeouts = new Column("timeout", 0);
  #waits = "";
  #count = 0;

  constructor(call: Call, head: ReplyHead, nowMs: number) {
    this.#head = head;
    this.#startedAtMs = nowMs - head.m;
    this.add(call, head);
  }

  /** False for a call of another run. Of a call that failed it is not known. */
  add({ arrivedAtMs, turnMs, lane, head: { d: leftMs } }: Call, { w, b, p }: ReplyHead): boolean {
    const isSame = w === this.#head.w && b === this.#head.b && p === this.#head.p;
    if (this.#count > 0 && (!isSame || w === "")) return false;
    this.#waits += `${this.#waits && ","}${Math.max(0, us(this.#startedAtMs - arrivedAtMs + turnMs))}`;
    this.#lanes.add(this.#count, priorities.indexOf(lane));
    this.#timeouts.add(this.#count++, Math.round(leftMs + turnMs));
    return true;
  }

  line(model: string): string {
    const { w, b, n, m, p } = this.#head;
    const outcome = w === "" ? `,"outcome":"error"` : p === true ? `,"outcome":"partial"` : "";
    const run = `{"run":${b},"worker":${JSON.stringify(w)},"size":${n},"model":${model},"at":${us(this.#startedAtMs)}`;
    return `${run},"took":${us(m)},"held":${us(m)}${outcome},"waits":[${this.#waits}]${this.#lanes.end()}${this.#timeouts.end()}}`;
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
