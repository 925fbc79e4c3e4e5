#!/usr/bin/env node
// First: it must run before anything loads ONNX Runtime or starts a worker.
import "../shared/without-telemetry.ts";
import { Command, CommanderError } from "commander";
import { commands } from "./commands.ts";
import { packageVersion } from "../shared/version.ts";

// A reader that stops reading (sheaf config | head -1) is not a failure; a full disk is.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") return;
  console.error(`sheaf: the output cannot be written: ${error.message}`);
  process.on("exit", () => (process.exitCode = 1));
});

// If progress cannot be shown, the data must still be written.
process.stderr.on("error", () => undefined);

// Not process.exit, which would lose output that is still on its way to a pipe.
process.exitCode = await main(process.argv.slice(2));

async function main([first, ...words]: readonly string[]): Promise<number> {
  const { stdout, stderr } = process;
  const entry = commands.find(({ name }) => name === first);
  if (entry !== undefined) {
    try {
      const { run } = await entry.load();
      return await run(words, { stdout, stderr });
    } catch (error) {
      // Commands report their own failures, so this is a file of the package that cannot be read.
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
