import { fieldsOf } from "../api-client/api-error.ts";
import { within, type Clock } from "../../core/runtime/runtime.ts";

/** What a provider says of a line that has no result. */
export class BatchLineError extends Error {
  override readonly name = "BatchLineError";
  /** HTTP status of the line's request; undefined where it did not run. */
  readonly status: number | undefined;
  /** The provider's, such as `batch_expired`. */
  readonly code: string | undefined;

  constructor(message: string, status?: number, code?: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** The reply to one request of a file, or why there is none. */
export interface LineResult {
  readonly id: string;
  readonly body: unknown;
  readonly error: BatchLineError | undefined;
}

/** A download from which nothing comes for this long is cut off. */
const silentMs = 60_000;
const longestLine = 2 ** 26;

/** @throws {SyntaxError} a line is cut short, or is no JSON. */
export async function* resultsIn(body: ReadableStream<Uint8Array>, clock: Clock): AsyncGenerator<LineResult, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const next = reader.read();
      if (!(await within(next, silentMs, clock))) throw new Error(`request timed out: no bytes for ${silentMs} ms`);
      const { done, value } = await next;
      rest += decoder.decode(value, { stream: !done });
      const lines = rest.split("\n");
      rest = done ? "" : lines.pop()!;
      if (rest.length > longestLine) throw new SyntaxError(`A line is longer than ${longestLine} characters.`);
      for (const line of lines) if (line.trim() !== "") yield resultOf(JSON.parse(line));
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

function resultOf(line: unknown): LineResult {
  const { custom_id, response, error } = fieldsOf(line);
  const id = String(custom_id);
  const { status_code: status, body } = fieldsOf(response) as {
    readonly status_code?: number;
    readonly body?: unknown;
  };
  if (!error && status !== undefined && status >= 200 && status < 300) return { id, body, error: undefined };
  const said = error ?? fieldsOf(body)["error"] ?? body;
  const { message, detail, code } = fieldsOf(said);
  const words = [message, detail, said].find((each) => typeof each === "string" && each !== "") as string | undefined;
  const reason = words?.slice(0, 2000) ?? `The provider failed the line with status ${status}.`;
  return { id, body, error: new BatchLineError(reason, status, typeof code === "string" ? code : undefined) };
}
