import { BatcherError } from "../../core/contract/errors.ts";
import { describe } from "../../shared/describe.ts";

const longestChars = 16_384;
/** The frames of a traceback, as Python writes them. */
const frames = /^ *File "([^"\n]+)", line (\d+)/gm;

/**
 * An error as a worker sends it: `{ type, message, traceback?, code? }`. It keeps its type as `name` and its traceback as
 * `stack`; `place` is the file and line that the traceback ends with. The code `INVALID_INPUT` says that the caller's item is wrong. Whatever else it is, it becomes an error.
 */
export function workerError(sent: unknown): Error {
  const { type, message, traceback, code } = (typeof sent === "object" && sent !== null ? sent : {}) as Record<
    string,
    unknown
  >;
  const text = typeof message === "string" ? message.slice(0, longestChars) : `The worker failed: ${describe(sent)}`;
  const stack = typeof traceback === "string" ? traceback.slice(-longestChars) : undefined;
  if (code === "INVALID_INPUT") return new BatcherError("INVALID_INPUT", text, {}, stack);
  const error = new Error(text);
  hidden(error, "name", typeof type === "string" && type !== "" ? type.slice(0, 200) : "Error");
  hidden(error, "stack", stack ?? `${error.name}: ${text}`);
  const [, file, line] = [...(stack ?? "").matchAll(frames)].at(-1) ?? [];
  if (file !== undefined) hidden(error, "place", `${file}, line ${line}`);
  if (typeof code === "string" || typeof code === "number") Object.assign(error, { code });
  return error;
}

// Not enumerable, as on any error.
function hidden(error: Error, key: "name" | "stack" | "place", value: string): void {
  Object.defineProperty(error, key, { value, writable: true, configurable: true, enumerable: false });
}
