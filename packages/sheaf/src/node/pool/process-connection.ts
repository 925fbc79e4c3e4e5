import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { FrameReader, writeFrame } from "../wire/frame.ts";
import type { HostOptions } from "../worker/host.ts";
import { holdOver, requestsOver, type WorkerConnection, type WorkerConnectionEvents } from "./connection.ts";
import { Kind, message, unpackError, type Port } from "../wire/message.ts";
import { pack, type Packed } from "../wire/pack.ts";
import { processEntry } from "../worker/entry.ts";
import { receivedFrom } from "../wire/received.ts";

export interface ProcessOptions extends HostOptions {
  readonly heapLimitMb: number | undefined;
  /** As `EncodeRows.wanted`. */
  readonly wantsEncoded: (() => boolean) | undefined;
}

/** A worker process: frames over a pipe of its own, so that its output cannot get in between. */
export function openProcess(
  { heapLimitMb, wantsEncoded, ...host }: ProcessOptions,
  events: WorkerConnectionEvents,
): WorkerConnection {
  const flags = [
    ...inheritedFlags(process.execArgv),
    ...(heapLimitMb === undefined ? [] : [`--max-old-space-size=${Math.ceil(heapLimitMb)}`]),
  ];
  const child = spawn(process.execPath, [...flags, fileURLToPath(processEntry)], {
    stdio: ["ignore", "inherit", "inherit", "pipe"],
  });
  // Without a free file handle there are no pipes at all; `error` follows.
  const pipe = (child.stdio as typeof child.stdio | undefined)?.[3] as Socket | undefined;
  let uncaught: Error | undefined;
  const reader = new FrameReader((received) => {
    if (received.kind === Kind.uncaught) uncaught = unpackError(received.packed as Packed);
    else events.message(receivedFrom(received));
  });
  pipe?.on("data", (chunk: Buffer) => {
    try {
      reader.push(chunk);
    } catch (error) {
      // The model wrote to a file descriptor that is not its own; what follows can no longer be parsed.
      uncaught ??= error as Error;
      pipe.destroy();
      child.kill("SIGKILL");
    }
  });
  // A write to a process that has just died; `close` says why.
  pipe?.on("error", () => undefined);

  let ended = false;
  const end = (why: string, error?: Error): void => {
    if (ended) return;
    ended = true;
    events.ended(why, error);
  };
  // Not `exit`: by `close` everything that it sent has been read.
  child.on("close", (code, signal) => {
    end(uncaught?.message ?? (signal === null ? `exit code ${code}` : `signal ${signal}`), uncaught);
  });
  child.on("error", (error) => {
    if (child.pid === undefined) end(error.message, error);
  });

  const send: Port["send"] = (sent) => {
    if (ended || pipe === undefined || pipe.destroyed) return;
    writeFrame(pipe, sent);
  };
  send(message(Kind.load, 0, 0, pack([host])));
  return {
    pid: child.pid,
    ...requestsOver({ send }, wantsEncoded),
    kill: () => {
      child.kill("SIGKILL");
      return true;
    },
    hold: holdOver(child, pipe),
  };
}

// Options of this process alone: its script, its debugger, its test run.
const own = /^--?(e|p|pe|eval|print|input-type|inspect|test|watch|check|max-old-space-size)\b/;
const withValue = /^--?(e|p|pe|eval|print)$/;

function inheritedFlags(flags: readonly string[]): string[] {
  return flags.filter((flag, i) => !own.test(flag) && !withValue.test(flags[i - 1] ?? ""));
}
