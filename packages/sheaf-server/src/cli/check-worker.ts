import type { Command } from "commander";
import { checkWorker as checksOf } from "sheaf/node";
import { UsageError } from "../shared/failure.ts";
import type { CommandStreams } from "../shared/terminal.ts";
import { exitCode, newCommand, parseDurationMs, running, type RunCommand } from "./shared/command.ts";

interface CheckWorkerOptions {
  readonly data?: string;
  readonly loadTimeout: number;
  readonly json?: true;
}

/** `sheaf check-worker COMMAND`: whether a program keeps to the worker protocol. Exit 3 where it does not. */
export const checkWorker: RunCommand = running(checkWorkerCommand, runCheck);

export function checkWorkerCommand(streams: CommandStreams): Command {
  return (
    newCommand("check-worker", streams)
      .description(
        "Tests a worker against the worker protocol: starts it repeatedly and tries every message and every fault.",
      )
      .argument("<command...>", "the worker and its arguments, as workerCommand starts it")
      // Arguments after the command belong to it.
      .passThroughOptions()
      .option("--data <json>", "data passed to the worker, as JSON")
      .option("--load-timeout <time>", "maximum time to load", parseDurationMs, 60_000)
      .option("--json", "print one line of JSON per check")
  );
}

async function runCheck(command: Command, { stdout }: CommandStreams): Promise<number> {
  const { data, loadTimeout: loadTimeoutMs, json } = command.opts<CheckWorkerOptions>();
  const [[program = "", ...args]] = command.processedArgs as [string[]];
  let failed = 0;
  for await (const check of checksOf({ command: program, args, data: parsed(data), loadTimeoutMs })) {
    const { name, ok, detail } = check;
    if (!ok) failed++;
    const text = `${ok ? "ok    " : "FAILED"} ${name}${detail === undefined ? "" : `: ${detail}`}`;
    stdout.write(`${json === true ? JSON.stringify(check) : text}\n`);
  }
  if (json !== true) stdout.write(failed === 0 ? "\nIt keeps to the worker protocol.\n" : `\n${failed} failed.\n`);
  return failed === 0 ? exitCode.ok : exitCode.no;
}

function parsed(data: string | undefined): unknown {
  if (data === undefined) return undefined;
  try {
    return JSON.parse(data) as unknown;
  } catch {
    throw new UsageError(`--data must be JSON, got ${data}`);
  }
}
