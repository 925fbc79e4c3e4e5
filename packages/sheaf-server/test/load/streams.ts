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
