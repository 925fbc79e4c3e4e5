import type { CommandStreams } from "../shared/terminal.ts";

/** Takes the words after a command's name; gives the exit code: 0 ok, 1 failure, 2 usage, 3 verdict "no". */
export type RunCommand = (words: readonly string[], streams: CommandStreams) => Promise<number>;

/**
 * Gives a command a signal that aborts on the first SIGINT or SIGTERM, so that it stops the servers it started; a second
 * one ends the process as ever.
 */
export const interruptible =
  (run: RunCommand): RunCommand =>
  async (words, streams) => {
    const controller = new AbortController();
    const abort = (signal: NodeJS.Signals): void => controller.abort(new Error(signal));
    process.once("SIGINT", abort).once("SIGTERM", abort);
    try {
      return await run(words, { ...streams, signal: controller.signal });
    } finally {
      process.off("SIGINT", abort).off("SIGTERM", abort);
    }
  };
