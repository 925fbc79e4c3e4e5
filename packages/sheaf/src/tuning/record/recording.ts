import type { RecordedSettings } from "../../shared/recorded-settings.ts";
import type { RunLine, SecondLine } from "./lines.ts";

/** Calls by column, in order of arrival; in milliseconds from the first one. */
export interface RecordedCalls {
  readonly count: number;
  readonly atMs: Float64Array;
  /** When its run ended; NaN for a call that joined none. */
  readonly endMs: Float64Array;
  readonly lane: Uint8Array;
  readonly weight: Float64Array;
  /** -1 without one. */
  readonly tenant: Int32Array;
  /** 0 without one. */
  readonly timeoutMs: Float64Array;
}

export interface RecordedRun {
  readonly size: number;
  readonly weight: number;
  readonly heaviest: number;
  /** As its executor measured it, and dispatch → results. */
  readonly runMs: number;
  readonly heldMs: number;
  /** As the calls'. */
  readonly endMs: number;
}

/** What is known of the calls of one model. */
export interface Recording {
  readonly model: string;
  readonly calls: RecordedCalls;
  /** Those that ended well and in one piece. */
  readonly runs: readonly RecordedRun[];
  /** Undefined in a trace of another tool. */
  readonly settings: RecordedSettings | undefined;
  /** Its slots are those of all workers of a fleet together. */
  readonly isFleet: boolean;
  /** Calls that joined no run, or left theirs. */
  readonly lost: number;
  readonly cached: number;
}

/** Longer pauses between two files are cut: nobody knows what came in them. */
const longestPauseMs = 1000;

/**
 * Reads records by model, each file a sequence of lines; also the traces of other tools that have `timestamp` (milliseconds) and
 * perhaps `input_length`, as Mooncake's. The files of one server are put in order of time, those of gateways joined by their runs.
 * @throws {RangeError} for a line that is neither; it says which, with the name of the file if `names` has it.
 */
export async function readRecords(
  files: readonly (AsyncIterable<string> | Iterable<string>)[],
  names: readonly string[] = [],
): Promise<Map<string, Recording>> {
  const models = new Map<string, Reader[]>();
  for (const [i, file] of files.entries()) {
    const readers = new Map<string, Reader>();
    const of = names[i] === undefined ? "" : ` of ${names[i]}`;
    let number = 0;
    for await (const text of file) {
      const where = `line ${++number}${of}`;
      if (text.trim() === "") continue;
      const line = parsed(text, where);
      const reader = readers.get(line.model) ?? new Reader(line.model);
      readers.set(line.model, reader);
      reader.add(line, where);
    }
    for (const [model, reader] of readers) models.set(model, [...(models.get(model) ?? []), reader]);
  }
  return new Map([...models].map(([model, readers]) => [model, joined(model, readers)]));
}

interface TraceLine {
  readonly model: string;
  readonly timestamp: number;
  readonly input_length?: number;
}

type Line = RunLine | SecondLine | TraceLine;

function parsed(text: string, where: string): Line {
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch {
    // Below.
  }
  const { model = "trace", run, sheaf, timestamp } = (line ?? {}) as Record<string, unknown>;
  const isOurs = typeof model === "string" && (typeof run === "number" || sheaf === 1);
  if (isOurs || (typeof timestamp === "number" && timestamp >= 0)) return { ...(line as Line), model: String(model) };
  throw new RangeError(
    `${where} is neither of a record (RECORD_FILE) nor of a trace with "timestamp": ${text.slice(0, 80)}`,
  );
}

/** Lists, which grow: a record may have millions of calls. */
type Columns = { readonly [Name in Exclude<keyof RecordedCalls, "count">]: number[] };

const names = ["atMs", "endMs", "lane", "weight", "tenant", "timeoutMs"] as const;

/** One model in one file. */
class Reader {
  readonly model: string;
  readonly columns: Columns = { atMs: [], endMs: [], lane: [], weight: [], tenant: [], timeoutMs: [] };
  readonly runs: RecordedRun[] = [];
  /** By worker and number: each is in the records of all gateways that had a call in it. */
  readonly fleetRuns: Map<string, RecordedRun> = new Map();
  settings: RecordedSettings | undefined;
  originMs = 0;
  lost = 0;
  cached = 0;
  /** Seconds that were left out, which the rest moves together to close. */
  #gapMs = 0;
  #endsAtMs: number | undefined;

  constructor(model: string) {
    this.model = model;
  }

  add(line: Line, where: string): void {
    if ("run" in line) this.#run(line);
    else if ("sheaf" in line) this.#second(line);
    else {
      const weight = line.input_length ?? 1;
      if (!(weight >= 0)) throw new RangeError(`${where}: input_length must be a number >= 0`);
      this.#push(line.timestamp, NaN, 1, weight, -1, 0);
    }
  }

  #run(line: RunLine): void {
    const { waits, outcome = "ok", again, expired = [], aborted = [], worker, size } = line;
    const startedAtMs = line.at / 1000 - this.#gapMs;
    const endMs = startedAtMs + line.held / 1000;
    let [weight, heaviest] = [0, 0];
    for (let place = 0; place < waits.length; place++) {
      const own = at(line.weight, place, 1);
      weight += own;
      heaviest = Math.max(heaviest, own);
      const arrivedAtMs = startedAtMs - waits[place]! / 1000;
      const [lane, tenant, timeoutMs] = [
        at(line.lane, place, 1),
        at(line.tenant, place, -1),
        at(line.timeout, place, 0),
      ];
      this.#push(arrivedAtMs, endMs, lane, own, tenant, timeoutMs);
    }
    this.lost += expired.length + aborted.length;
    if (outcome !== "ok" || again === true || waits.length === 0) return;
    const [runMs, heldMs] = [line.took / 1000, line.held / 1000];
    if (worker === undefined || size === undefined)
      this.runs.push({ size: waits.length, weight, heaviest, runMs, heldMs, endMs });
    // Weights are the workers'.
    else this.fleetRuns.set(`${worker} ${line.run}`, { size, weight: size, heaviest: 1, runMs, heldMs, endMs });
  }

  #second(line: SecondLine): void {
    const { settings, origin, refused = 0, refusedBulk = 0, expired = 0, gaveUp = 0, cached = 0 } = line;
    this.settings = settings;
    this.originMs = origin;
    this.cached += cached;
    const sinceMs = line.since / 1000;
    if (this.#endsAtMs !== undefined) this.#gapMs += Math.max(0, sinceMs - this.#endsAtMs);
    this.#endsAtMs = line.at / 1000;
    // Their moments are not known: evenly over their second.
    const live = refused + expired + gaveUp;
    const lost = live + refusedBulk;
    this.lost += lost;
    const timeoutMs = settings.timeoutMs ?? 0;
    for (let i = 0; i < lost; i++) {
      const atMs = sinceMs + ((i + 0.5) / lost) * (this.#endsAtMs - sinceMs) - this.#gapMs;
      this.#push(atMs, NaN, i < live ? 1 : 2, NaN, -1, timeoutMs);
    }
  }

  #push(
    ...values: readonly [atMs: number, endMs: number, lane: number, weight: number, tenant: number, timeoutMs: number]
  ): void {
    for (let column = 0; column < names.length; column++) this.columns[names[column]!].push(values[column]!);
  }
}

const at = (column: number | readonly number[] | undefined, place: number, usual: number): number =>
  (typeof column === "object" ? column[place] : column) ?? usual;

function joined(model: string, readers: readonly Reader[]): Recording {
  const files = readers
    .filter(({ columns }) => columns.atMs.length > 0)
    .map((reader) => ({ reader, firstMs: reader.columns.atMs.reduce((first, atMs) => Math.min(first, atMs)) }))
    .sort((a, b) => a.reader.originMs + a.firstMs - (b.reader.originMs + b.firstMs));
  const [first] = files;
  const runs: RecordedRun[] = [];
  const fleetRuns = new Map<string, RecordedRun>();
  const count = files.reduce((sum, { reader }) => sum + reader.columns.atMs.length, 0);
  const all = {
    atMs: new Float64Array(count),
    endMs: new Float64Array(count),
    lane: new Uint8Array(count),
    weight: new Float64Array(count),
    tenant: new Int32Array(count),
    timeoutMs: new Float64Array(count),
  };
  let next = 0;
  let [endsAtMs, cutMs] = [0, 0];
  for (const { reader, firstMs } of files) {
    const { columns, originMs } = reader;
    // Not as moments since 1970: a number holds those to a quarter of a microsecond.
    const startsAtMs = originMs - first!.reader.originMs + (firstMs - first!.firstMs);
    cutMs = Math.max(cutMs, startsAtMs - endsAtMs - longestPauseMs);
    const shiftMs = startsAtMs - cutMs - firstMs;
    for (const name of names) all[name].set(columns[name], next);
    for (const end = next + columns.atMs.length; next < end; next++) {
      endsAtMs = Math.max(endsAtMs, (all.atMs[next]! += shiftMs));
      all.endMs[next]! += shiftMs;
    }
    const moved = (run: RecordedRun): RecordedRun => ({ ...run, endMs: run.endMs + shiftMs });
    for (const run of reader.runs) runs.push(moved(run));
    for (const [name, run] of reader.fleetRuns) fleetRuns.set(name, moved(run));
  }
  // Files may be of the same time.
  const order = Uint32Array.from(all.atMs.keys()).sort((a, b) => all.atMs[a]! - all.atMs[b]!);
  for (const name of names) all[name].set(all[name].map((_: number, i: number) => all[name][order[i]!]!));
  const known = all.weight.filter((weight) => !Number.isNaN(weight));
  const meanWeight = known.length === 0 ? 1 : known.reduce((sum, weight) => sum + weight, 0) / known.length;
  return {
    model,
    calls: { count, ...all, weight: all.weight.map((weight) => (Number.isNaN(weight) ? meanWeight : weight)) },
    runs: [...runs, ...fleetRuns.values()],
    settings: files.at(-1)?.reader.settings,
    isFleet: fleetRuns.size > 0,
    lost: files.reduce((sum, { reader }) => sum + reader.lost, 0),
    cached: files.reduce((sum, { reader }) => sum + reader.cached, 0),
  };
}
