import { InvalidArgumentError, type Command } from "commander";
import { advise, type Judged, type RecordAdvice, type Slo } from "sheaf/internal/tuning";
import { Players } from "../load/recommend/players.ts";
import { serverSettings } from "../load/recommend/settings.ts";
import { CommandFailure } from "../shared/failure.ts";
import { figures, percent, progressOn, shownCommand, textTable, type CommandStreams } from "../shared/terminal.ts";
import { configPath, withWriteConfig, writeConfig } from "./shared/config-file.ts";
import { exitCode, newCommand, numberFrom, parseDurationMs, running, type RunCommand } from "./shared/command.ts";
import { recordingOf } from "./shared/recorded.ts";

interface RecommendOptions {
  readonly model?: string;
  readonly slo?: Slo;
  readonly speed: number;
  readonly writeConfig?: string | true;
  readonly json?: true;
}

/** `sheaf recommend FILE …`: recommends settings from a record, or to change nothing (exit 3). */
export const recommend: RunCommand = running(recommendCommand, runRecommend);

export function recommendCommand(streams: CommandStreams): Command {
  const command = newCommand("recommend", streams)
    .description(
      "Plays the calls of a record again under other settings, with the real batcher on a virtual clock, and recommends settings, or to change nothing.",
    )
    .argument(
      "<file...>",
      "the record that RECORD_FILE names; with its FILE.1, and those of all gateways, in any order",
    )
    .option("--model <name>", "the model, if the record has several")
    .option("--slo <objective>", "a latency that calls should have, such as p99=50ms", objective)
    .option("--speed <n>", "play the calls this many times as fast", numberFrom(0.01, 100), 1)
    .option("--json", "print all results as JSON");
  return withWriteConfig(command);
}

function objective(text: string): Slo {
  const [, quantile, time] = /^(p50|p95|p99|mean)=(.+)$/.exec(text) ?? [];
  if (quantile === undefined)
    throw new InvalidArgumentError("It must be p50, p95, p99 or mean and a time, such as p99=50ms.");
  const ms = parseDurationMs(time!);
  if (ms === 0) throw new InvalidArgumentError("Its time must be above 0.");
  return { quantile: quantile as Slo["quantile"], ms };
}

async function runRecommend(command: Command, streams: CommandStreams, args: readonly string[]): Promise<number> {
  const { model, slo, speed, writeConfig: given, json } = command.opts<RecommendOptions>();
  const [files] = command.processedArgs as [string[]];
  const path = given === undefined ? undefined : configPath(given);
  const recording = await recordingOf(files, model);
  const progress = progressOn(streams.stderr);
  progress.start("Playing");
  let plays = 0;
  const players = new Players(() => {
    streams.signal?.throwIfAborted();
    progress.update(plays / (plays + 10), `${++plays} plays`);
  });
  let advice: RecordAdvice;
  try {
    advice = await advise(recording, { slo, speed, play: players.play });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new CommandFailure(`${files.join(", ")} says too little: ${error.message}.`);
  } finally {
    await players.close();
  }
  progress.end(`${plays} plays of ${figures(advice.calls)} calls`);
  const { verdict, changes } = advice;
  const settings = serverSettings(changes);
  const output = { command: shownCommand("recommend", args), ...advice, settings };
  streams.stdout.write(json === true ? `${JSON.stringify(output)}\n` : shownAdvice(advice, settings));
  if (path !== undefined && verdict === "change") {
    await writeConfig(path, settings);
    streams.stderr.write(`Wrote ${path}\n`);
  } else if (path !== undefined) streams.stderr.write(`${path} was not changed.\n`);
  return verdict === "change" ? exitCode.ok : exitCode.no;
}

const latencies = ["mean", "p50", "p95", "p99"] as const;

function shownAdvice(advice: RecordAdvice, settings: ReturnType<typeof serverSettings>): string {
  const { verdict, because, present, recommended, recordedMs, notes, calls, runs } = advice;
  const rows = [
    ["", ...latencies.map((name) => `${name} ms`), "calls/s", "mean batch", "lost"],
    ["recorded", ...latencies.map((name) => figures(recordedMs[name])), "", "", ""],
    ["present settings", ...figuresOf(present)],
    ...(verdict === "change" ? [["recommended", ...figuresOf(recommended)]] : []),
  ];
  const changes = Object.entries(settings).map(
    ([name, value]) => `${envOf(name)}: ${serverSettings(present.settings)[name] ?? "none"} → ${value ?? "none"}`,
  );
  const head = verdict === "change" ? ["Change:", ...changes].join("\n  ") : "Change nothing";
  return `${textTable(rows)}\n\n${head}${verdict === "change" ? `\nBecause: ${because}` : `: ${because}`}.\n${[
    `From ${figures(calls)} calls in ${figures(runs)} runs. In brackets: the least and the most of six plays; what is served may differ by more.`,
    ...notes,
  ].join("\n")}\n`;
}

function figuresOf({ latencyMs, perS, meanBatchSize, lostRate }: Judged): string[] {
  const range = ([mean, low, high]: Judged["perS"]): string =>
    figures(low) === figures(high) ? figures(mean) : `${figures(mean)} (${figures(low)}–${figures(high)})`;
  return [
    ...latencies.map((name) => range(latencyMs[name])),
    range(perS),
    figures(meanBatchSize[0]),
    percent(lostRate[0]),
  ];
}

const envOf = (name: string): string => name.replaceAll(/[A-Z]/g, "_$&").toUpperCase();
