import { pipeline, Readable } from "node:stream";
import { createRateLimit, type BatcherStats } from "sheaf";
import { boundedText, TooLarge } from "sheaf/internal/openai";
import { pacedCalls, type PacedCalls, type PacedContext } from "sheaf/adapters/llm";
import { Agent, request } from "undici";
import { hasTenants } from "../tenants/callers.ts";
import { whileRunning, type Caller } from "../tenants/caller.ts";
import type { Tenant } from "../tenants/tenants.ts";
import type { Settings } from "../settings/settings.ts";
import { OfKeys, type OfOneKey } from "./key-batchers.ts";
import type { ModelRequest } from "./model-request.ts";
import { longRefusal, longestRefusalBytes, unreachable, UpstreamError, type UpstreamHeaders } from "./upstream.ts";
import { UsageReader } from "./usage-reader.ts";

/** As long as the official clients wait for an answer. */
export const longestAnswerMs = 600_000;

/** A request of a caller to the upstream. */
export interface PacedRequest extends ModelRequest {
  readonly url: string;
  readonly headers: UpstreamHeaders;
  readonly caller: Caller | undefined;
}

/** An answer that goes on while it is read. */
export interface PacedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: UsageReader;
  /** Resolves when it has been read, or left. */
  readonly ended: Promise<boolean>;
}

/** The calls of one key and one model. */
class PacedKey implements OfOneKey {
  readonly calls: PacedCalls<PacedRequest, PacedAnswer>;
  readonly opener: object | string;
  readonly openedAtMs: number = performance.now();

  constructor(settings: Settings, dispatcher: Agent, opener: object | string) {
    this.opener = opener;
    const { upstreamRequestsPerMinute: runs, upstreamTokensPerMinute: weight } = settings;
    const isKnown = runs !== undefined || weight !== undefined;
    this.calls = pacedCalls(
      (asked: PacedRequest, context) => whileRunning([asked.caller], () => send(asked, context, dispatcher)),
      {
        name: "llm",
        concurrency: settings.upstreamConcurrency,
        maxQueueSize: settings.queueMaxSize,
        runTimeoutMs: longestAnswerMs,
        // A body without JSON is estimated by its length.
        estimate: ({ params, length }) => (params === undefined ? { input: Math.ceil(length / 4) } : {}),
        rateLimit: createRateLimit({ limits: isKnown ? { runs, weight, perMs: 60_000 } : undefined }),
        ...(hasTenants(settings) && {
          fairKey: ({ caller }: PacedRequest) => caller?.tenant,
          shareOf: (tenant: unknown) => (tenant as Tenant | undefined)?.share ?? 1,
        }),
      },
    );
  }

  get batcher(): PacedCalls<PacedRequest, PacedAnswer>["batcher"] {
    return this.calls.batcher;
  }

  get stats(): BatcherStats {
    return this.batcher.stats();
  }
}

/** The calls of language models of each key and model. */
export class PacedKeys extends OfKeys<PacedKey> {
  readonly name = "llm";
  readonly maxBatchSize = 1;
  readonly #dispatcher = new Agent({ headersTimeout: longestAnswerMs, bodyTimeout: longestAnswerMs });

  protected make(opener: object | string): PacedKey {
    return new PacedKey(this.settings, this.#dispatcher, opener);
  }

  override async close(graceMs: number): Promise<boolean> {
    const isComplete = await super.close(graceMs);
    await this.#dispatcher.destroy();
    return isComplete;
  }
}

/** @throws {UpstreamError} for a refusal; {Problem} `UPSTREAM_UNREACHABLE` when no reply came. */
async function send(
  asked: PacedRequest,
  { signal, onHeaders, onUsage, until }: PacedContext,
  dispatcher: Agent,
): Promise<PacedAnswer> {
  const { bytes, rest, length } = asked;
  const headers = { ...asked.headers, "content-length": String(length) };
  const body = rest === undefined ? bytes : Readable.from(joined(bytes, rest), { objectMode: false });
  const reply = await request(asked.url, { method: "POST", headers, body, signal, dispatcher }).catch(
    (error: unknown) => {
      throw signal.aborted ? signal.reason : unreachable(error);
    },
  );
  const told = reply.headers as Record<string, string | string[] | undefined>;
  onHeaders(told);
  const { statusCode: status } = reply;
  if (status >= 400) {
    const facts = {
      status,
      contentType: String(told["content-type"] ?? "application/octet-stream"),
      headers: headersOf(told),
    };
    const text = await boundedText(reply.body[Symbol.asyncIterator](), longestRefusalBytes, false).catch(
      (error: unknown) => {
        reply.body.destroy();
        if (!(error instanceof TooLarge)) throw error;
        return undefined;
      },
    );
    throw new UpstreamError(text === undefined ? longRefusal(facts) : { ...facts, text });
  }
  const isStream = /^text\/event-stream/i.test(String(told["content-type"]));
  const reader = new UsageReader(isStream, asked.addsUsage);
  const ended = new Promise<boolean>((resolve) => {
    pipeline(reply.body, reader, (error) => {
      onUsage(error === undefined || error === null ? reader.usage : reader.soFar);
      resolve(!error);
    });
  });
  until(ended, !isStream);
  return { status, headers: told, body: reader, ended };
}

async function* joined(bytes: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield bytes;
  yield* rest;
}

function headersOf(told: Readonly<Record<string, string | string[] | undefined>>): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(told)) for (const each of [value ?? []].flat()) headers.append(name, each);
  return headers;
}
