import { writeSync } from "node:fs";
import { parentPort, threadId } from "node:worker_threads";
import { defineWorker } from "../../dist/node/index.js";

/** What a module does that is none of its business. */
export type Mischief =
  | "nothing"
  | "post to parentPort"
  | "close parentPort"
  | "write to the pipe"
  | "results without end"
  | "a negative count"
  | "a text"
  | "a result nested too deep"
  | "an unreadable error"
  | "an unreadable error in a place"
  | "a function"
  | "a throwing getter";

function unreadable(): Error {
  return Object.defineProperty(new Error(), "message", {
    get: () => {
      throw new Error("not to be read");
    },
  });
}

// In a thread as deep as it can send: its stack is larger than that of the program.
function nested(depth: number): unknown {
  let value: unknown = "ok";
  for (let i = 0; i < depth; i++) value = [value];
  return value;
}

function misbehave(mischief: Mischief): unknown {
  if (mischief === "post to parentPort") parentPort?.postMessage("of the module's own");
  if (mischief === "close parentPort") parentPort?.close();
  if (mischief === "write to the pipe") writeSync(3, "of the module's own, and longer than the head of a message is");
  if (mischief === "results without end") return { length: 1e12 };
  if (mischief === "a negative count") return { length: -1 };
  if (mischief === "a text") return "ok";
  if (mischief === "a result nested too deep") return [nested(threadId === 0 ? 100_000 : 6_000)];
  if (mischief === "an unreadable error") throw unreadable();
  if (mischief === "an unreadable error in a place") return [unreadable()];
  return ["ok"];
}

function unpackable(mischief: Mischief): unknown {
  if (mischief === "a function") return () => "ok";
  if (mischief !== "a throwing getter") return "ok";
  return {
    get value() {
      throw "not to be read"; // eslint-disable-line no-throw-literal
    },
  };
}

export default defineWorker({
  run: (mischiefs: Mischief[]) =>
    mischiefs.length === 1
      ? (misbehave(mischiefs[0] as Mischief) as string[])
      : (mischiefs.map(unpackable) as string[]),
});
