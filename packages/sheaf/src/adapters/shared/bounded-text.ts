export class TooLarge extends Error {
  override readonly name = "TooLarge";
}

export class NotUtf8 extends Error {
  override readonly name = "NotUtf8";
}

/** Where the chunks of a body come from: a web stream's reader, or a Node stream's iterator. */
export interface ChunkSource {
  next(): Promise<{ readonly done?: boolean | undefined; readonly value?: Uint8Array | undefined }>;
}

export function webSource(stream: ReadableStream<Uint8Array> | null): ChunkSource {
  const reader = stream?.getReader();
  return { next: () => reader?.read() ?? Promise.resolve({ done: true }) };
}

/** The text of a reply, as `boundedText` reads it; a rest that is not read is dropped. `fatal` false: what is not UTF-8 is replaced. */
export async function replyText({ body }: Response, maxBytes: number, fatal: boolean = true): Promise<string> {
  const reader = body?.getReader();
  if (reader === undefined) return "";
  try {
    return await boundedText({ next: () => reader.read() }, maxBytes, fatal);
  } catch (error) {
    reader.cancel(error).catch(() => undefined);
    throw error;
  }
}

/**
 * Reads UTF-8 text of at most `maxBytes`.
 * @throws {TooLarge} as soon as more came; the rest is left unread.
 * @throws {NotUtf8}
 */
export async function boundedText(source: ChunkSource, maxBytes: number, fatal: boolean = true): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal });
  let text = "";
  let bytes = 0;
  for (let chunk = await source.next(); chunk.done !== true; chunk = await source.next()) {
    bytes += chunk.value!.byteLength;
    if (bytes > maxBytes) throw new TooLarge(`more than ${maxBytes} bytes`);
    text += decoded(() => decoder.decode(chunk.value, { stream: true }));
  }
  return text + decoded(() => decoder.decode());
}

function decoded(decode: () => string): string {
  try {
    return decode();
  } catch (error) {
    throw new NotUtf8("it is not UTF-8", { cause: error });
  }
}
