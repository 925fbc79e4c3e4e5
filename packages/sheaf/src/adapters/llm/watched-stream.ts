/** What is seen of a stream as it is read. */
export interface StreamWatch {
  chunk(chunk: unknown): void;
  /** Once. `isWhole`: it was read to its end, and not left or broken off. */
  ended(isWhole: boolean): void;
}

const isReadable = (value: unknown): value is ReadableStream<unknown> =>
  typeof ReadableStream === "function" && value instanceof ReadableStream;
const isIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof value === "object" && value !== null && Symbol.asyncIterator in value;

/**
 * The same result with a watched stream: one that is a stream, or holds one as `stream` (the AI SDK) or `data` (`withResponse()` of
 * OpenAI's and Anthropic's clients). Undefined without a stream. A client's own stream stays the same object.
 */
export function withWatchedStream<T>(result: T, watch: StreamWatch): T | undefined {
  if (isReadable(result)) return watchedReadable(result, watch) as T;
  if (isIterable(result)) return watchedIterable(result, watch);
  for (const name of ["stream", "data"] as const) {
    const inner = (result as Readonly<Record<string, unknown>> | null | undefined)?.[name];
    const watched = typeof inner === "object" && inner !== null ? withWatchedStream(inner, watch) : undefined;
    if (watched !== undefined) return { ...result, [name]: watched };
  }
  return undefined;
}

function watchedReadable(stream: ReadableStream<unknown>, watch: StreamWatch): ReadableStream<unknown> {
  const reader = stream.getReader();
  return new ReadableStream<unknown>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) {
            watch.chunk(value);
            return controller.enqueue(value);
          }
          watch.ended(true);
          controller.close();
        } catch (error) {
          watch.ended(false);
          throw error;
        }
      },
      async cancel(reason) {
        watch.ended(false);
        await reader.cancel(reason);
      },
    },
    // Nothing is read before the caller asks for it.
    { highWaterMark: 0 },
  );
}

function watchedIterable<T extends AsyncIterable<unknown>>(stream: T, watch: StreamWatch): T {
  const iterate = stream[Symbol.asyncIterator].bind(stream);
  async function* watched(): AsyncGenerator {
    let isWhole = false;
    try {
      for await (const chunk of { [Symbol.asyncIterator]: iterate }) {
        watch.chunk(chunk);
        yield chunk;
      }
      isWhole = true;
    } finally {
      watch.ended(isWhole);
    }
  }
  return Object.defineProperty(stream, Symbol.asyncIterator, { value: watched, configurable: true });
}
