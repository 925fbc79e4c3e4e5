import type { Command } from "commander";
import { calibrate, type Calibration } from "sheaf/tuning";
import {
  countUpTo,
  exitCode,
  largestBatch,
  largestSeed,
  listOf,
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
import { configPath, withWriteConfig, writeConfig } from "./shared/config-file.ts";
import { withHeaders } from "./shared/client-options.ts";
import { CommandFailure, UsageError } from "../shared/failure.ts";
import { doubling } from "../shared/doubling.ts";
import type { CommandStreams } from "../shared/terminal.ts";
import { machine } from "../load/bench/machine.ts";
import type { ReportPage } from "../load/report/page.ts";
import { tuneCharts } from "../load/report/tune-charts.ts";
import { prepareReport } from "../load/report/prepare.ts";
import { writeReport } from "../load/report/write.ts";
import { figures, percent, progressOn, shownCommand, shownMs, textTable } from "../shared/terminal.ts";
import { adviseOn, verdictLines, type Advice } from "../load/tune/advice.ts";
import { resolveTuneTarget } from "../load/tune/resolve-target.ts";
import type { TuneTarget } from "../load/tune/target.ts";
import type { BatchVerdict } from "../runners/self-test/batch-verdict.ts";

interface TuneOptions extends OutputOptions {
  readonly sizes: number[];
  readonly workers: number;
  readonly device?: string;
  readonly concurrency?: number[];
  readonly item?: string;
  readonly rate?: number;
  readonly budget?: number;
  readonly order: "free" | "strict";
  readonly error: number;
  readonly maxTime: number;
  readonly timeout: number;
  readonly header?: Readonly<Record<string, string>>;
  readonly seed: number;
  readonly writeConfig?: string | true;
}

/**
 * `sheaf tune <model|worker|url>`: measures the cost of batches and recommends settings, or not to batch (exit 3), or reports that
 * neither is settled (exit 1).
 */
export const tune: RunCommand = running(tuneCommand, runTune);

export function tuneCommand(streams: CommandStreams): Command {
  const command = newCommand("tune", streams)
    .description(
      "Measures the run time of each batch size and recommends settings, or not to batch, with the inequality behind it.",
    )
    .argument("<target>", "a model as for sheaf serve (a worker module may export sample), or a URL")
    .option("--sizes <list>", "batch sizes", listOf(countUpTo(largestBatch)), [1, 2, 4, 8, 16, 32])
    .option("--workers <n>", "instances of the model, or concurrent requests to a URL", countUpTo(256), 1)
    .option("--device <devices>", "device of a model, as INFERENCE_DEVICE (default: cpu)")
    .option("--concurrency <list>", "batches in flight to measure (default: 1 to --workers)", listOf(countUpTo(1024)))
    .option("--item <template>", "one item as JSON; {{floats N}}, {{words N}}, {{int N}} and {{i}} vary")
    .option("--rate <n>", "items per second to plan for (default: 70 % of the capacity)", numberFrom(0.001, maxPerS))
    .option("--budget <time>", "latency budget (SLO) to recommend settings for", parseDurationMs)
    .option(
      "--order <kind>",
      "free, or strict: an item may start only when the previous one has ended",
      oneOf(["free", "strict"]),
      "free",
    )
    .option("--error <percent>", "measure until each median is known to this precision", numberFrom(0.01, 100), 2)
    .option("--max-time <time>", "maximum time to measure", parseDurationMs, 20_000)
    .option("--timeout <time>", "maximum time of a request to a URL", parseDurationMs, 30_000)
    .option("--seed <n>", "seed of the items", countUpTo(largestSeed), 1);
  return withOutputs(withHeaders(withWriteConfig(command)));
}

async function runTune(command: Command, streams: CommandStreams, args: readonly string[]): Promise<number> {
  const options = command.opts<TuneOptions>();
  const [target] = command.processedArgs as [string];
  for (const [name, ms] of [
    ["--budget", options.budget],
    ["--max-time", options.maxTime],
    ["--timeout", options.timeout],
  ] as const) {
    if (ms === 0) throw new UsageError(`${name} must be above 0.`);
  }
  if (options.writeConfig !== undefined) configPath(options.writeConfig);
  await prepareReport(options);
  const { item, workers, device, seed, header: headers, timeout: timeoutMs } = options;
  const maxBatchSize = Math.max(...options.sizes);
  const tried = { target, item, workers, device, maxBatchSize, seed, headers, timeoutMs, signal: streams.signal };
  const measured = await resolveTuneTarget(tried);
  let calibration: Calibration;
  let tested: BatchVerdict;
  try {
    ({ calibration, tested } = await measure(measured, target, options, streams));
  } finally {
    await measured.close();
  }

  const best = Math.max(...calibration.rows.map(({ itemsPerS }) => itemsPerS));
  const ratePerS = options.rate ?? Number((0.7 * best).toPrecision(3));
  const { slots, costModel } = calibration;
  const { budget: latencyBudgetMs, order } = options;
  const advice = adviseOn(costModel, { ratePerS, latencyBudgetMs, slots, order }, tested, best);
  const lines = [
    ...summary(calibration, advice, { ...options, rate: ratePerS }, options.rate === undefined),
    ...(device === undefined || measured.note === undefined ? [] : [measured.note]),
    ...(tested.warning === undefined ? [] : [tested.warning]),
  ];
  const commandLine = shownCommand("tune", args);
  if (options.json) {
    streams.stdout.write(
      `${JSON.stringify({ command: commandLine, machine: machine(), ratePerS, device: measured.device, note: measured.note, ...calibration, selfTest: tested.selfTest, recommendation: advice })}\n`,
    );
  } else streams.stdout.write(`${textTable(tableOf(calibration))}\n\n${lines.join("\n")}\n`);
  if (options.writeConfig !== undefined) await writeAdvice(options, calibration, advice, streams);
  const page = (): ReportPage => ({
    title: `The gain of batching on ${target}`,
    verdicts: lines,
    facts: [
      ["Command", commandLine],
      ["Machine", machine()],
    ],
    sections: [{ title: "Measured", rows: tableOf(calibration), charts: tuneCharts(calibration) }],
  });
  await writeReport(options, page, streams.stderr);
  if (!advice.isSettled) return exitCode.failure;
  return advice.verdict === "batch" ? exitCode.ok : exitCode.no;
}

async function measure(
  { run, sample, slots, selfTest }: TuneTarget,
  target: string,
  { sizes, concurrency, error, maxTime }: TuneOptions,
  { stderr, signal }: CommandStreams,
): Promise<{ readonly calibration: Calibration; readonly tested: BatchVerdict }> {
  const progress = progressOn(stderr);
  progress.start(`Measuring ${target}`);
  try {
    const tested = await selfTest();
    const calibration = await calibrate(run, {
      sample,
      sizes,
      concurrency: concurrency ?? doubling(1, slots),
      targetError: error / 100,
      maxMs: maxTime,
      onProgress: ({ round, share }) => progress.update(share, `round ${round}`),
      signal,
    });
    progress.end(`${calibration.rounds} rounds, medians within ${percent(calibration.errorRate)}`);
    return { calibration, tested };
  } catch (cause) {
    if (signal?.aborted === true || cause instanceof CommandFailure) throw cause;
    throw new CommandFailure(`${target} failed while it was measured: ${(cause as Error).message}`);
  }
}

function tableOf({ rows, costModel: { fixedMs, perItemMs } }: Calibration): string[][] {
  return [
    ["in flight", "size", "run ms", "± %", "line ms", "items/s", "runs"],
    ...rows.map(({ concurrency, size, runMs, errorRate, itemsPerS, runs }) =>
      [concurrency, size, runMs, 100 * errorRate, fixedMs + perItemMs * size, itemsPerS, runs].map(figures),
    ),
  ];
}

function summary(
  { costModel, kneeSize, slots, errorRate, rows }: Calibration,
  advice: Advice,
  { rate = 0, budget, error }: TuneOptions,
  assumed: boolean,
): string[] {
  const { fixedMs, perItemMs, r2 } = costModel;
  const sizes = costModel.table.map(([size]) => size);
  const inFlight = [...new Set(rows.map(({ concurrency }) => concurrency))];
  const for_ = `${figures(rate)} items/s${assumed ? " (assumed: 70 % of the capacity with batches)" : ""}`;
  const within = budget === undefined ? "" : ` within ${shownMs(budget)}`;
  const lines = [
    `s(n) = ${shownMs(fixedMs)} + ${shownMs(perItemMs)} · n, R² ${r2.toFixed(3)}; medians within ${percent(errorRate)}` +
      (errorRate > error / 100 ? ` (asked for ${figures(error)} %: measure longer with --max-time)` : ""),
    kneeSize === sizes.at(-1)
      ? `Items a second still rise at the largest measured size, ${kneeSize} (--sizes).`
      : `Throughput rises by less than 5 % beyond size ${kneeSize} on.`,
    ...(inFlight.length > 1 ? [`Of ${inFlight.join(", ")} batches in flight, ${slots} is enough.`] : []),
    ...verdictLines(`For ${for_}${within}`, costModel, advice),
  ];
  if (!advice.isSettled || advice.verdict === "do not batch") return lines;
  const tooMuch = advice.utilisation >= 1 ? " This is more than it can serve: add workers." : "";
  return [
    ...lines,
    `MAX_BATCH_SIZE=${advice.maxBatchSize} MAX_WAIT_MS=${settingMs(advice.maxWaitMs)} WORKERS=${slots}: ` +
      `${figures(advice.capacityPerS)} items/s at most (${figures(advice.unbatchedCapacityPerS)} one at a time; ` +
      `95 % range ${range(advice.ranges.capacityPerS)} items/s, sizes ${range(advice.ranges.maxBatchSize)}), ` +
      `${percent(advice.utilisation)} of it used; batches of ${figures(advice.meanBatchSize)} on average, ` +
      `run time per item ${figures(advice.expectedSpeedup)}× better.${tooMuch}`,
  ];
}

const range = ([low, high]: readonly [number, number]): string =>
  low === high ? figures(low) : `${figures(low)} to ${figures(high)}`;

/** The settings take whole milliseconds, MAX_WAIT_MS up to a minute. */
const settingMs = (ms: number): number => Math.min(60_000, Math.ceil(ms));

/** Writes the advice into a config file. */
async function writeAdvice(
  { writeConfig: given, budget }: TuneOptions,
  { slots }: Calibration,
  advice: Advice,
  { stderr }: CommandStreams,
): Promise<void> {
  const path = configPath(given!);
  if (!advice.isSettled) {
    stderr.write(`${path} was not changed: nothing is settled.\n`);
    return;
  }
  const { maxBatchSize, maxWaitMs } = advice;
  await writeConfig(path, {
    maxBatchSize,
    ...(advice.verdict === "batch" ? { maxWaitMs: settingMs(maxWaitMs), workers: slots } : {}),
    ...(budget === undefined ? {} : { latencyBudgetMs: Math.ceil(budget) }),
  });
  stderr.write(`Wrote ${path}\n`);
}
