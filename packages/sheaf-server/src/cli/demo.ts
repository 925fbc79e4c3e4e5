import type { Command } from "commander";
import {
  exitCode,
  newCommand,
  parseDurationMs,
  running,
  withOutputs,
  type OutputOptions,
  type RunCommand,
} from "./shared/command.ts";
import { UsageError } from "../shared/failure.ts";
import type { CommandStreams } from "../shared/terminal.ts";
import type { DemoResult } from "../load/demo/demo.ts";
import { machine } from "../load/bench/machine.ts";
import { verdictLines } from "../load/tune/advice.ts";
import type { LoadResult } from "../load/result.ts";
import { loadCharts, loadSections } from "../load/report/load-charts.ts";
import type { ReportPage } from "../load/report/page.ts";
import { tuneCharts } from "../load/report/tune-charts.ts";
import { prepareReport } from "../load/report/prepare.ts";
import { writeReport } from "../load/report/write.ts";
import { resultTable } from "../load/result-table.ts";
import { figures, percent, progressOn, shownCommand, shownMs, textTable } from "../shared/terminal.ts";

interface DemoFlags extends OutputOptions {
  readonly duration: number;
}

/** `sheaf demo`: batching at work, for a minute, offline. */
export const demo: RunCommand = running(demoCommand, showDemo);

export function demoCommand(streams: CommandStreams): Command {
  const command = newCommand("demo", streams)
    .description(
      "Shows batching for a minute, offline: a ramp one by one and batched, bursts, a bad item, a killed worker, the verdict. " +
        "The worker is a real process that waits 10 ms a batch and 0.3 ms an item, like a small network on a GPU.",
    )
    .option("--duration <time>", "approximate time of the whole demo", parseDurationMs, 60_000);
  return withOutputs(command);
}

async function showDemo(command: Command, streams: CommandStreams, args: readonly string[]): Promise<number> {
  const options = command.opts<DemoFlags>();
  if (options.duration < 3000) throw new UsageError("--duration must be at least 3s: there is much to show.");
  await prepareReport(options);
  const { runDemo } = await import("../load/demo/demo.ts");
  const progress = progressOn(streams.stderr);
  let running = false;
  const result = await runDemo({
    durationMs: options.duration,
    signal: streams.signal,
    onStep(label) {
      if (running) progress.end("done");
      running = true;
      progress.start(label);
    },
    onProgress: (share) => progress.update(share),
  });
  progress.end("done");

  const loads = [result.ramp.unbatched, result.ramp.batched, result.burst, named("killed", result.killed.load)];
  const lines = story(result);
  if (options.json) streams.stdout.write(`${JSON.stringify({ machine: machine(), ...result })}\n`);
  else streams.stdout.write(`${textTable(resultTable(loads))}\n\n${lines.join("\n")}\n`);
  await writeReport(options, () => pageOf(args, result, loads, lines), streams.stderr);
  const { failed } = result.poison;
  const { isSettled, verdict } = result.advice;
  return failed === 1 && !(isSettled && verdict === "do not batch") ? exitCode.ok : exitCode.no;
}

function story({ ramp, burst, poison, killed, calibration, advice }: DemoResult): string[] {
  const { unbatched, batched } = ramp;
  const { fixedMs, perItemMs, r2 } = calibration.costModel;
  const p99 = (result: LoadResult): string => shownMs(result.latencyMs.p99);
  return [
    `Ramp: one by one ${figures(unbatched.achievedPerS)} calls/s and p99 ${p99(unbatched)} with ${percent(unbatched.successRate)} ` +
      `answered; batched ${figures(batched.achievedPerS)} calls/s and p99 ${p99(batched)} with ${percent(batched.successRate)}.`,
    `Bursts: p50 ${shownMs(burst.latencyMs.p50)}, p99 ${p99(burst)}, ${percent(burst.successRate)} answered.`,
    `Poison: of ${poison.calls} calls ${poison.failed} failed, the bad one; ${poison.bisectRuns} extra runs found it.`,
    `Killed: process ${killed.pid} got SIGKILL; ${percent(killed.load.successRate)} of ${figures(killed.load.requests)} calls ` +
      `answered, the slowest after ${shownMs(killed.load.latencyMs.max)}; ${killed.restarts} restart.`,
    `Cost: s(n) = ${shownMs(fixedMs)} + ${shownMs(perItemMs)} · n (R² ${r2.toFixed(3)}).`,
    ...verdictLines("Verdict", calibration.costModel, advice),
  ];
}

const pageOf = (
  args: readonly string[],
  { calibration }: DemoResult,
  loads: readonly LoadResult[],
  verdicts: readonly string[],
): ReportPage => ({
  title: "Batching in a minute",
  verdicts,
  facts: [
    ["Command", shownCommand("demo", args)],
    ["Machine", machine()],
  ],
  sections: [
    ...loadSections(loads),
    { title: "All patterns", charts: loadCharts(loads) },
    { title: "The cost of a run", charts: tuneCharts(calibration) },
  ],
});

const named = (configuration: string, result: LoadResult): LoadResult => ({ ...result, configuration });
