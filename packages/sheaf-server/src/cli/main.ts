#!/usr/bin/env node
// First: it must run before anything loads ONNX Runtime or starts a worker.
import "../shared/without-telemetry.ts";
import { Command, CommanderError } from "commander";
import type { CommandStreams } from "../shared/terminal.ts";
import { interruptible } from "./interrupt.ts";
import { packageVersion } from "../server/version.ts";

/** Takes the words after its name; gives the exit code: 0 ok, 1 failure, 2 usage, 3 verdict "no". */
type RunCommand = (words: readonly string[], streams: CommandStreams) => Promise<number>;

interface Entry {
  readonly name: string;
  readonly summary: string;
  load(): Promise<RunCommand>;
}

// A module is loaded only when its command is the one that was asked for: --help loads nothing heavy.
const commands: readonly Entry[] = [
  {
    name: "serve",
    summary: "serve models over HTTP, in dynamic batches",
    load: async () => (await import("./serve.ts")).serve,
  },
  {
    name: "proxy",
    summary: "let requests of an embeddings API share requests to it",
    load: async () => (await import("./proxy.ts")).proxy,
  },
  {
    name: "config",
    summary: "print every setting and where its value came from",
    load: async () => (await import("./config.ts")).config,
  },
  {
    name: "bench",
    summary: "load a server or a model on schedule and report its latency",
    load: async () => interruptible((await import("./bench.ts")).bench),
  },
  {
    name: "tune",
    summary: "measure what batches cost and advise settings, or not to batch",
    load: async () => interruptible((await import("./tune.ts")).tune),
  },
  {
    name: "simulate",
    summary: "ask what if, on the real batcher and a virtual clock",
    // It starts nothing that must be stopped, and its virtual clock leaves no turn in which a signal could arrive.
    load: async () => (await import("./simulate.ts")).simulate,
  },
  {
    name: "demo",
    summary: "see what batching does, in a minute, offline",
    load: async () => interruptible((await import("./demo.ts")).demo),
  },
];

// A reader that stops reading (sheaf config | head -1) is not a failure; a disk without room is.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") return;
  console.error(`sheaf: the output cannot be written: ${error.message}`);
  process.on("exit", () => (process.exitCode = 1));
});

// Progress that cannot be shown is no reason to lose the data.
process.stderr.on("error", () => undefined);

// Set, not process.exit: what was written to a pipe still leaves.
process.exitCode = await main(process.argv.slice(2));

async function main([first, ...words]: readonly string[]): Promise<number> {
  const { stdout, stderr } = process;
  const entry = commands.find(({ name }) => name === first);
  if (entry !== undefined) {
    try {
      const run = await entry.load();
      return await run(words, { stdout, stderr });
    } catch (error) {
      // Commands report their own failures; this is a file of the package that cannot be read.
      stderr.write(`sheaf ${first}: ${(error as Error).message}\n`);
      return 1;
    }
  }
  try {
    await overview().parseAsync(first === undefined ? ["--help"] : [first, ...words], { from: "user" });
    return 0;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
}

function overview(): Command {
  const program = new Command("sheaf")
    .description("Dynamic batching for model inference: serve, measure, tune.")
    .version(packageVersion())
    .exitOverride()
    .showHelpAfterError("Run sheaf --help to see the commands.")
    .addHelpText("after", "\nRun sheaf COMMAND --help for the options of a command.");
  for (const { name, summary } of commands) program.command(name).description(summary);
  return program;
}
