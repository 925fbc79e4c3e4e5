import type { BatcherStats } from "sheaf";
import { SecondsOf, type BatcherSecond } from "./batcher-second.ts";
import type { BatcherState, DashboardBatcher, DashboardState, Limit, Playground } from "./observed.ts";

/** The data of the page, once a second: the same for every viewer, computed once. */
export interface Tick {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly status: string;
  /** Of this process since the last tick: 1 is one core. */
  readonly cpuCores: number;
  readonly memoryBytes: number;
  /** In the order of `Hello.batchers`. */
  readonly batchers: readonly BatcherTick[];
  readonly tenants: DashboardState["tenants"];
  readonly batches: DashboardState["batches"];
  readonly rateLimits: DashboardState["rateLimits"];
  readonly fronts: DashboardState["fronts"];
  /** Items that a bound of their tenant kept out of every queue, since the last tick. */
  readonly keptOut: number;
}

export interface BatcherTick extends BatcherState {
  /** Since construction, distributions over the last 60 s. */
  readonly stats: BatcherStats;
  readonly second: BatcherSecond;
}

/** A way from the page to elsewhere; `href` is relative to the page. */
export interface Link {
  readonly label: string;
  readonly href: string;
}

/** The first event of a viewer. */
export interface Hello {
  readonly title: string;
  readonly version: string;
  readonly links: readonly Link[];
  readonly batchers: readonly {
    readonly name: string;
    readonly maxBatchSize: number | null;
    readonly warning?: string | undefined;
    readonly limits: readonly Limit[];
    readonly playground?: Playground | undefined;
  }[];
  /** The last seconds, oldest first: `seconds` in the order of `batchers`. */
  readonly history: readonly Point[];
  readonly last: Tick | undefined;
}

/** One second of all batchers. */
interface Point {
  readonly atMs: number;
  readonly seconds: readonly BatcherSecond[];
  readonly keptOut: number;
}

/** Two minutes of points for a viewer who comes later. */
const historyKept = 120;
const tickMs = 1000;

/** The one limit that every batcher on the page has. */
export const batchSizeLimit = (maxBatchSize: number): Limit => ({
  label: "Batch size",
  value: maxBatchSize === Infinity ? "no limit" : `at most ${maxBatchSize.toLocaleString("en")}`,
});

/** A batcher may be named as something that every object has. */
const stateIn = (states: DashboardState["batchers"], name: string): BatcherState =>
  (Object.hasOwn(states, name) ? states[name] : undefined) ?? { state: "ready" };

/** Takes a snapshot of all batchers once a second, and keeps the last two minutes of points. */
export class Ticks {
  readonly #list: () => readonly DashboardBatcher[];
  readonly #state: () => DashboardState;
  #batchers: readonly DashboardBatcher[] = [];
  #seconds: readonly SecondsOf[] = [];
  readonly #changed = new Set<() => void>();
  readonly #history: Point[] = [];
  #keptOutBefore = 0;
  readonly #listeners = new Set<(tick: Tick) => void>();
  readonly #failed: (error: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  #last: Tick | undefined;
  #cpu = process.cpuUsage();
  #cpuAtMs = performance.now();

  /** `failed` gets the error of a snapshot: watching must not end the process. */
  constructor(
    batchers: () => readonly DashboardBatcher[],
    state: () => DashboardState,
    failed: (error: unknown) => void,
  ) {
    this.#list = batchers;
    this.#state = state;
    this.#failed = failed;
    this.refresh();
    this.#timer = setInterval(() => this.take(), tickMs);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
    for (const seconds of this.#seconds) seconds.close();
  }

  subscribe(listener: (tick: Tick) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Called when batchers came, went or changed: a viewer's list of them is out of date. */
  onChange(listener: () => void): void {
    this.#changed.add(listener);
  }

  hello(about: Pick<Hello, "title" | "version" | "links">): Hello {
    const batchers = this.#batchers.map(({ name, maxBatchSize, warning, limits, playground }) => ({
      name,
      maxBatchSize: maxBatchSize === Infinity ? null : maxBatchSize,
      warning,
      limits: limits ?? [batchSizeLimit(maxBatchSize)],
      playground,
    }));
    return { ...about, batchers, history: this.#history, last: this.#last };
  }

  /** Ends the current second now. */
  take(): void {
    try {
      this.#take();
    } catch (error) {
      this.#failed(error);
    }
  }

  refresh(): void {
    const [before, now] = [this.#batchers, this.#list()];
    if (now.length === before.length && now.every((batcher, index) => batcher === before[index])) return;
    const seconds = new Map(before.map(({ name, maxBatchSize }, i) => [`${maxBatchSize} ${name}`, this.#seconds[i]!]));
    this.#seconds = now.map((batcher) => {
      const key = `${batcher.maxBatchSize} ${batcher.name}`;
      const same = seconds.get(key) ?? new SecondsOf(batcher);
      seconds.delete(key);
      return same;
    });
    for (const gone of seconds.values()) gone.close();
    this.#batchers = now;
    // Points stand in the order of the batchers.
    if (now.map(({ name }) => name).join("\n") !== before.map(({ name }) => name).join("\n")) {
      this.#history.length = 0;
      this.#last = undefined;
    }
    for (const changed of this.#changed) changed();
  }

  #take(): void {
    this.refresh();
    const atMs = Date.now();
    const { status, batchers: states, tenants, batches, rateLimits, fronts } = this.#state();
    const batchers = this.#batchers.map((batcher, index): BatcherTick => {
      const stats = batcher.stats();
      const { state, reason, workers, restarts } = stateIn(states, batcher.name);
      return {
        state,
        reason,
        workers,
        restarts,
        stats,
        second: this.#seconds[index]!.take(stats, batcher.cache?.counts),
      };
    });
    const keptOut = (tenants?.keptOut ?? 0) - this.#keptOutBefore;
    this.#keptOutBefore += keptOut;
    const tick = {
      atMs,
      status,
      cpuCores: this.#cpuCores(),
      memoryBytes: process.memoryUsage.rss(),
      batchers,
      tenants,
      batches,
      rateLimits,
      fronts,
      keptOut,
    };
    this.#last = tick;
    this.#history.push({ atMs, seconds: batchers.map(({ second }) => second), keptOut });
    if (this.#history.length > historyKept) this.#history.shift();
    for (const listener of this.#listeners) listener(tick);
  }

  #cpuCores(): number {
    const { user, system } = process.cpuUsage(this.#cpu);
    const elapsedMs = performance.now() - this.#cpuAtMs;
    this.#cpu = process.cpuUsage();
    this.#cpuAtMs += elapsedMs;
    return elapsedMs > 0 ? (user + system) / 1000 / elapsedMs : 0;
  }
}
