import type { Command } from "commander";
import type { Arrivals, SimulatedCost } from "sheaf/internal/tuning";
import { retriesOf, withClients } from "./shared/client-options.ts";
import { lengthsOf, withLengths } from "./shared/lengths-option.ts";
import { hasTenants, withTenants, type TenantOptions } from "./shared/tenant-options.ts";
import { textOf } from "./shared/text-file.ts";
import {
  countUpTo,
  exitCode,
  largestBatch,
  largestSeed,
  listOf,
  longestMs,
  maxPerS,
  newCommand,
  numberFrom,
  oneOf,
  parseDurationMs,
  running,
  withOutputs,
  type OutputOptions,
  type RunCommand,
} from "./shared/command.ts";
import { UsageError, usage } from "../shared/failure.ts";
import type { CommandStreams } from "../shared/terminal.ts";
import { configurationNames, type ConfigurationName } from "../load/simulate/configurations.ts";
import type { ReportPage } from "../load/report/page.ts";
import { simulateCharts } from "../load/report/simulate-charts.ts";
import { prepareReport } from "../load/report/prepare.ts";
import { writeReport } from "../load/report/write.ts";
import { figures, progressOn, shownCommand, textTable } from "../shared/terminal.ts";
import { tableOf } from "../load/simulate/table.ts";
import {
  capacityPerS,
  lineOf,
  simulatePolicy,
  tenantKeys,
  type TenantKey,
  type WhatIf,
  type WhatIfPoint,
} from "../load/simulate/what-if.ts";

const patterns = ["poisson", "periodic", "burst", "clump", "surge", "closed"] as const;

/** A surge: more calls for 10 s than before and after. */
const surge = { atMs: 4000, forMs: 10_000, afterMs: 17_000 };

/** Simulated time of a run with a flood. */
const floodMs = 5000;

/** Most calls, or callers, in a run. */
const maxItems = 10_000_000;
/** Most items in flight with every slot full: measuring the capacity takes many times as many calls. */
const maxInFlight = 100_000;

interface SimulateOptions extends OutputOptions, TenantOptions {
  readonly fixed?: number;
  readonly perItem?: number;
  readonly perLength?: number;
  readonly padded?: true;
  readonly lengths?: string;
  readonly maxBatchWeight?: number;
  readonly surgeFactor: number;
  readonly cost?: string;
  readonly policy: ConfigurationName[];
  readonly tenantKey: TenantKey[];
  readonly arrivals: (typeof patterns)[number];
  readonly trace?: string;
  readonly load: number[];
  readonly rate?: number[];
  readonly callers: number[];
  readonly slots: number;
  readonly maxBatchSize: number;
  readonly maxWait: number;
  readonly maxQueueSize: number;
  readonly timeout?: number;
  readonly budget?: number;
  readonly items: number;
  readonly seed: number;
}

/** `sheaf simulate`: runs the real batcher on a virtual clock. */
export const simulate: RunCommand = running(simulateCommand, runSimulate);

export function simulateCommand(streams: CommandStreams): Command {
  const command = newCommand("simulate", streams)
    .description(
      "Simulates policies under several loads with the real batcher on a virtual clock, for a stated or a measured cost.",
    )
    .option("--fixed <ms>", "run time of a batch, independent of its size", numberFrom(0, longestMs))
    .option("--per-item <ms>", "run time per item", numberFrom(0, longestMs))
    .option("--per-length <ms>", "with --lengths: run time per unit of length", numberFrom(0, longestMs))
    .option("--padded", "with --lengths: items are padded to the longest of their batch")
    .option("--cost <file>", "cost from the output of sheaf tune --json, instead of --fixed and --per-item")
    .option(
      "--policy <names>",
      `comma-separated: ${configurationNames.join(", ")}`,
      listOf(oneOf(configurationNames)),
      [...configurationNames],
    )
    .option("--arrivals <pattern>", patterns.join(", "), oneOf(patterns), "poisson")
    .option("--surge-factor <n>", "surge: multiple of the rate from second 4 to 14", numberFrom(1, 1000), 3)
    .option("--trace <file>", "recorded arrivals instead: one time in milliseconds a line, ascending")
    .option("--load <list>", "shares of the capacity", listOf(numberFrom(0.001, 1000)), [0.1, 0.3, 0.5, 0.7, 0.9])
    .option("--rate <list>", "loads as calls per second, instead of --load", listOf(numberFrom(0.001, maxPerS)))
    .option("--callers <list>", "numbers of callers, for closed arrivals", listOf(countUpTo(100_000)), [1, 4, 16, 64])
    .option("--slots <n>", "concurrent batches", countUpTo(1000), 1)
    .option("--max-batch-size <n>", "as MAX_BATCH_SIZE", countUpTo(largestBatch), 32)
    .option("--max-batch-weight <n>", "with --lengths: maximum length of a batch (default: none)", numberFrom(1, 1e12))
    .option("--max-wait <time>", "as MAX_WAIT_MS", parseDurationMs, 50)
    .option("--max-queue-size <n>", "as QUEUE_MAX_SIZE", countUpTo(maxItems), 1000)
    .option("--timeout <time>", "maximum wait of a caller (default: none)", parseDurationMs)
    .option("--budget <time>", "latency budget of the policy auto (default: none)", parseDurationMs)
    .option("--items <n>", "calls per run (default in a surge: 31 s, in a flood: 5 s)", countUpTo(maxItems), 10_000)
    .option("--seed <n>", "seed of arrivals", countUpTo(largestSeed), 1);
  withLengths(command, "lengths of the items");
  withTenants(command, "n times the capacity").option(
    "--tenant-key <names>",
    `with --tenants: how the batcher distinguishes callers, comma-separated: ${tenantKeys.join(", ")}`,
    listOf(oneOf(tenantKeys)),
    ["none", "fairKey"],
  );
  return withOutputs(withClients(command));
}

async function runSimulate(command: Command, streams: CommandStreams, args: readonly string[]): Promise<number> {
  const options = command.opts<SimulateOptions>();
  if (options.slots * options.maxBatchSize > maxInFlight)
    throw new UsageError(`--slots times --max-batch-size must be at most ${maxInFlight}.`);
  if (options.timeout === 0 || options.budget === 0) throw new UsageError("--timeout and --budget must be above 0.");
  const keys = tenantKeysOf(command, options);
  const isOfAuto = keys[0] !== undefined;
  const policies = isOfAuto && command.getOptionValueSource("policy") !== "cli" ? (["auto"] as const) : options.policy;
  const whatIf: WhatIf = {
    retries: retriesOf(command),
    weights: options.lengths === undefined ? undefined : await lengthsOf(options.lengths),
    maxBatchWeight: options.maxBatchWeight,
    cost: await costOf(options),
    slots: options.slots,
    maxBatchSize: options.maxBatchSize,
    maxWaitMs: options.maxWait,
    maxQueueSize: options.maxQueueSize,
    timeoutMs: options.timeout,
    latencyBudgetMs: options.budget,
    items: options.items,
    seed: options.seed,
  };
  await prepareReport(options);
  const capacity = await settled(() => capacityPerS(whatIf));
  const loads = await loadsOf(options, capacity);
  const points: WhatIfPoint[] = [];
  const progress = progressOn(streams.stderr);
  progress.start("Simulating");
  const hasItems = command.getOptionValueSource("items") === "cli";
  const runs = loads.flatMap((one) =>
    policies.flatMap((policy) => keys.map((tenantKey) => ({ ...one, policy, tenantKey }))),
  );
  const floodPerS = options.flood === undefined ? undefined : options.flood * capacity;
  for (const { label, load, arrivals, policy, tenantKey } of runs) {
    streams.signal?.throwIfAborted();
    const items = hasItems ? options.items : itemsOf(arrivals, options, floodPerS);
    const tenants = tenantKey && { count: options.tenants!, floodPerS, key: tenantKey };
    const result = await settled(() => simulatePolicy(policy, arrivals, { ...whatIf, items, tenants }));
    const point = { policy, tenantKey, label, load, result };
    points.push(point);
    progress.update(points.length / runs.length, `${lineOf(point)}, ${label}`);
    // A virtual clock leaves no turn of the event loop for signals and the progress bar.
    await new Promise(setImmediate);
  }
  progress.end(`${points.length} runs`);
  await publish(options, shownCommand("simulate", args), capacity, points, streams);
  return exitCode.ok;
}

/** Number of calls to simulate: until long after a surge; with a flood those of a few seconds. */
function itemsOf(arrivals: Arrivals, { items }: SimulateOptions, floodPerS: number | undefined): number {
  if (!("ratePerS" in arrivals)) return items;
  const perS = arrivals.ratePerS + (floodPerS ?? 0);
  const ofSpan = (ms: number): number => Math.ceil(Math.min(maxItems, (perS * ms) / 1000));
  if (arrivals.pattern === "surge") return ofSpan(surge.atMs + arrivals.factor * surge.forMs + surge.afterMs);
  return floodPerS === undefined ? items : ofSpan(floodMs);
}

/** The ways to tell tenants apart, with one run for each; a single undefined without tenants. */
function tenantKeysOf(
  command: Command,
  { tenantKey, arrivals, trace }: SimulateOptions,
): readonly (TenantKey | undefined)[] {
  if (!hasTenants(command, { tenantKey: "--tenant-key" })) return [undefined];
  if (trace !== undefined || arrivals === "closed")
    throw new UsageError("--tenants needs arrivals with a rate: without --trace, and not closed.");
  return tenantKey;
}

interface Load {
  readonly label: string;
  readonly load: number;
  readonly arrivals: Arrivals;
}

async function loadsOf(options: SimulateOptions, capacity: number): Promise<Load[]> {
  if (options.trace !== undefined) {
    const atMs = await traceOf(options.trace);
    const perS = (1000 * (atMs.length - 1)) / (atMs.at(-1)! - atMs[0]!);
    return [{ label: `trace, ${figures(perS)}/s`, load: perS, arrivals: { pattern: "trace", atMs } }];
  }
  const { arrivals: pattern } = options;
  if (pattern === "closed") {
    return options.callers.map((clients) => ({
      label: clients === 1 ? "1 caller" : `${clients} callers`,
      load: clients,
      arrivals: { pattern, clients },
    }));
  }
  const rates = options.rate ?? options.load.map((share) => share * capacity);
  return rates.map((ratePerS) => ({
    label: `${figures(ratePerS)}/s`,
    load: ratePerS,
    arrivals: arrivalsOf(pattern, ratePerS, options),
  }));
}

function arrivalsOf(
  pattern: Exclude<SimulateOptions["arrivals"], "closed">,
  ratePerS: number,
  { surgeFactor: factor }: SimulateOptions,
): Arrivals {
  if (pattern === "surge") return { pattern, ratePerS, factor, atMs: surge.atMs, forMs: surge.forMs };
  // A burst: 100 ms at four times the rate, 300 ms of nothing, on average.
  return pattern === "burst" ? { pattern, ratePerS, onMs: 100, offMs: 300 } : { pattern, ratePerS };
}

async function costOf({
  fixed,
  perItem,
  cost,
  lengths,
  perLength,
  padded,
  maxBatchWeight,
}: SimulateOptions): Promise<SimulatedCost> {
  if (lengths === undefined && (perLength ?? padded ?? maxBatchWeight) !== undefined)
    throw new UsageError("--per-length, --padded and --max-batch-weight need --lengths.");
  if (lengths !== undefined && (perLength === undefined || cost !== undefined))
    throw new UsageError("--lengths needs --fixed, --per-item and --per-length: 10, 0 and 0.02 (milliseconds), say.");
  if (cost === undefined) {
    if (fixed !== undefined && perItem !== undefined && fixed + perItem + (perLength ?? 0) > 0)
      return {
        fixedMs: fixed,
        perItemMs: perItem,
        perWeightMs: perLength,
        batchWeight: padded === undefined ? "sum" : "padded",
      };
    throw new UsageError(
      "state what a batch costs: --fixed 10 --per-item 0.3 (milliseconds, not both 0), or --cost FILE from sheaf tune --json.",
    );
  }
  if (fixed !== undefined || perItem !== undefined)
    throw new UsageError("--cost replaces --fixed and --per-item: give one or the other.");
  const parsed = (await jsonOf("--cost", cost)) as { costModel?: { table?: unknown } };
  const table = parsed.costModel?.table;
  if (!Array.isArray(table) || !table.every(isPoint) || table.length === 0) {
    throw new UsageError(
      `--cost ${cost} holds no costModel.table of [size, milliseconds]: write it with sheaf tune --json.`,
    );
  }
  return { table: table.map(([size, runMs]) => [size, runMs] as const) };
}

async function traceOf(path: string): Promise<number[]> {
  const lines = (await textOf("--trace", path)).split("\n").filter((line) => line.trim() !== "");
  const atMs = lines.map(Number);
  if (
    atMs.length >= 2 &&
    atMs.every((ms, i) => ms <= 1000 * longestMs && ms >= (atMs[i - 1] ?? 0)) &&
    atMs.at(-1)! > atMs[0]!
  ) {
    return atMs;
  }
  throw new UsageError(`--trace ${path} must hold two or more moments in milliseconds, one a line, ascending from 0.`);
}

const isPoint = (point: unknown): point is [number, number] =>
  Array.isArray(point) &&
  Number.isInteger(point[0]) &&
  point[0] >= 1 &&
  typeof point[1] === "number" &&
  point[1] > 0 &&
  point[1] <= longestMs;

async function jsonOf(flag: string, path: string): Promise<object> {
  const text = await textOf(flag, path);
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // Not JSON: below.
  }
  throw new UsageError(`${flag} ${path} is not JSON.`);
}

/** Turns options that the simulator refuses into usage errors. */
async function settled<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    return usage(() => {
      throw error;
    });
  }
}

async function publish(
  options: SimulateOptions,
  commandLine: string,
  capacity: number,
  points: readonly WhatIfPoint[],
  { stdout, stderr }: CommandStreams,
): Promise<void> {
  const rows = tableOf(points);
  const note = `Capacity with full batches: ${figures(capacity)} calls/s.`;
  if (options.json) {
    const flat = points.map(({ result, ...point }) => ({
      ...point,
      result: { ...result, batchSizes: [...result.batchSizes] },
    }));
    stdout.write(`${JSON.stringify({ command: commandLine, capacityPerS: capacity, points: flat })}\n`);
  } else stdout.write(`${textTable(rows)}\n${note}\n`);
  const axis =
    options.trace === undefined && options.arrivals === "closed" ? "Callers" : "Offered load (calls per second)";
  const page = (): ReportPage => ({
    title: "What if",
    verdicts: [note],
    facts: [["Command", commandLine]],
    sections: [{ title: "Simulated", rows, charts: simulateCharts(points, axis) }],
  });
  await writeReport(options, page, stderr);
}
