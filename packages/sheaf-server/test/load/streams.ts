import type { RunCommand } from "../../dist/cli/shared/command.js";
import type { CommandStreams } from "../../dist/shared/terminal.js";

/** Collects what a command writes. */
export function collected(): CommandStreams & { out: () => string; err: () => string } {
  let out = "";
  let err = "";
  return {
    stdout: { write: (text) => (out += text) },
    stderr: { write: (text) => (err += text) },
    out: () => out,
    err: () => err,
  };
}

/** Runs a command: its exit code, and what it wrote. */
export const running =
  (command: RunCommand) =>
  async (...words: readonly string[]) => {
    const streams = collected();
    const code = await command(words, streams);
    return { code, out: streams.out(), err: streams.err() };
  };
