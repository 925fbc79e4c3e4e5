import { Transform, type TransformCallback } from "node:stream";
import type { TokenUsage } from "sheaf/adapters/llm";
import { outputIn, usageIn } from "sheaf/internal/openai";

/** A reply without a stream that is longer is not read for its usage. */
const longestReply = 4 * 1024 * 1024;
/** An event that is longer is passed on unread. */
const longestEvent = 4 * 1024 * 1024;

/**
 * Passes a reply on as it comes and reads the provider's count from it: from the JSON of a whole reply, or from the events of a stream.
 * `withoutUsage` takes the chunk out that only has the `usage` which the client did not ask for.
 */
export class UsageReader extends Transform {
  usage: TokenUsage = {};
  readonly #isStream: boolean;
  readonly #withoutUsage: boolean;
  #pieces: Buffer[] = [];
  #length = 0;
  /** Estimated from what came of a stream. */
  #streamed = 0;

  constructor(isStream: boolean, withoutUsage: boolean) {
    super();
    this.#isStream = isStream;
    this.#withoutUsage = isStream && withoutUsage;
  }

  /** What has been used if the reply was left before its end. */
  get soFar(): TokenUsage {
    return { input: this.usage.input, output: Math.max(this.usage.output ?? 0, this.#streamed) };
  }

  override _transform(piece: Buffer, _encoding: string, done: TransformCallback): void {
    if (!this.#withoutUsage) this.push(piece);
    if (this.#isStream) this.#readEvents(piece);
    else if ((this.#length += piece.length) <= longestReply) this.#pieces.push(piece);
    done();
  }

  override _flush(done: TransformCallback): void {
    const rest = Buffer.concat(this.#pieces);
    if (this.#isStream) this.#event(rest);
    else if (this.#length <= longestReply) this.#learn(jsonOr(rest.toString()));
    done();
  }

  #readEvents(piece: Buffer): void {
    let buffer = this.#pieces.length === 0 ? piece : Buffer.concat([...this.#pieces, piece]);
    // An event ends with an empty line.
    for (let end = endOfEvent(buffer); end > 0; end = endOfEvent(buffer)) {
      this.#event(buffer.subarray(0, end));
      buffer = buffer.subarray(end);
    }
    if (buffer.length > longestEvent) {
      this.#event(buffer);
      buffer = buffer.subarray(buffer.length);
    }
    this.#pieces = buffer.length === 0 ? [] : [buffer];
  }

  #event(bytes: Buffer): void {
    const data = bytes.toString().replaceAll(/^(?!data:).*$\n?|^data: ?/gm, "");
    const json = jsonOr(data);
    this.#learn(json);
    this.#streamed += outputIn(json);
    const { choices, usage } = (json ?? {}) as { readonly choices?: unknown; readonly usage?: unknown };
    const isOnlyUsage = Array.isArray(choices) && choices.length === 0 && typeof usage === "object" && usage !== null;
    if (this.#withoutUsage && !isOnlyUsage && bytes.length > 0) this.push(bytes);
  }

  #learn(json: unknown): void {
    const { input, output } = usageIn(json);
    this.usage = { input: input ?? this.usage.input, output: output ?? this.usage.output };
  }
}

function endOfEvent(buffer: Buffer): number {
  for (let at = buffer.indexOf(10); at >= 0; at = buffer.indexOf(10, at + 1)) {
    if (buffer[at + 1] === 10) return at + 2;
    if (buffer[at + 1] === 13 && buffer[at + 2] === 10) return at + 3;
  }
  return 0;
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
