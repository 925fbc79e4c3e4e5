import { checkFunction, checkNames, checkText } from "../../shared/checks.ts";
import { describe } from "../../shared/describe.ts";
import { NotUtf8, replyText, TooLarge } from "../shared/bounded-text.ts";

/** A text, or a text as token ids. */
export type EmbeddingInput = string | readonly number[];

/** Body of `POST /embeddings`. Parameters that only some APIs know go through as they are. */
export interface EmbeddingsRequest {
  readonly model: string;
  readonly input: readonly EmbeddingInput[];
  readonly encoding_format?: "float" | "base64";
  readonly [parameter: string]: unknown;
}

export interface EmbeddingsReply {
  readonly data: readonly { readonly index: number; readonly embedding: unknown }[];
  readonly usage?: { readonly prompt_tokens?: number; readonly total_tokens?: number } | undefined;
}

/** The request options of openai's client. `maxRetries` 0: the adapter retries, with one pause for all. */
export interface RequestOptions {
  readonly signal: AbortSignal;
  readonly maxRetries: 0;
}

/** The part of openai's client that is used; `new OpenAI()` has it, and so has `openaiFetch()`. */
export interface OpenAILike {
  readonly embeddings: {
    create(body: never, options?: RequestOptions): PromiseLike<unknown>;
  };
}

export interface FetchOptions {
  /**
   * URL that `/embeddings` is appended to. Required.
   * @example
   * openaiFetch({ baseURL: "https://api.openai.com/v1", apiKey });
   */
  readonly baseURL: string;
  /**
   * Sent as `authorization: Bearer KEY`.
   * @default none
   */
  readonly apiKey?: string | undefined;
  /**
   * More headers, such as `openai-organization` or Azure's `api-key`.
   * @default none
   */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Sends the requests.
   * @default the global `fetch`
   */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

/** The headers of a reply, as openai's client gives them: a promise of the reply with a method `withResponse`. */
interface ReplyPromise {
  withResponse?(): PromiseLike<{ readonly data: unknown; readonly response: { readonly headers: Headers } }>;
}

/** A reply, and its headers if the client exposes them. */
export async function withHeaders(
  sent: PromiseLike<unknown>,
): Promise<{ readonly reply: EmbeddingsReply | undefined; readonly headers: Headers | undefined }> {
  const { withResponse } = sent as ReplyPromise;
  if (typeof withResponse !== "function") return { reply: (await sent) as EmbeddingsReply, headers: undefined };
  const { data, response } = await withResponse.call(sent);
  return { reply: data as EmbeddingsReply, headers: response?.headers };
}

const fetchOptions: Record<keyof FetchOptions, true> = { baseURL: true, apiKey: true, headers: true, fetch: true };

/**
 * An embeddings API by plain fetch, for where openai's client is not installed.
 * @throws {TypeError} for a wrong option, or one that it does not know.
 */
export function openaiFetch(options: FetchOptions): OpenAILike {
  if (typeof options !== "object" || options === null) throw new TypeError(`openaiFetch needs { baseURL }, got ${describe(options)}`); // prettier-ignore
  checkNames(options, fetchOptions);
  const { baseURL, apiKey, headers, fetch = globalThis.fetch } = options;
  if (!URL.canParse(baseURL)) throw new TypeError(`baseURL must be a URL, got ${describe(baseURL)}`);
  if (apiKey !== undefined) checkText("apiKey", apiKey);
  checkFunction("fetch", fetch);
  // A query stays one, such as Azure's api-version.
  const [, base, query] = /^([^?#]*?)\/*(\?[^#]*)?(?:#.*)?$/.exec(baseURL)!;
  const url = `${base}/embeddings${query ?? ""}`;
  const sent = {
    "content-type": "application/json",
    ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    ...headers,
  };
  return {
    embeddings: {
      create: (body: EmbeddingsRequest, options?: RequestOptions) => {
        const signal = options?.signal ?? null;
        // Following a redirect would take keys to another address.
        const init = { method: "POST", headers: sent, body: JSON.stringify(body), signal, redirect: "manual" } as const;
        const replied = fetch(url, init).then(async (response) => {
          const text = await replyText(response, mostReplyBytes(body)).catch((error: unknown) => {
            if (!(error instanceof TooLarge || error instanceof NotUtf8)) throw error;
            throw new Error(`The reply from ${url} cannot be read: ${error.message}`, { cause: error });
          });
          if (!response.ok) throw new OpenAIError(response, text);
          return { data: jsonIn(text, url), response };
        });
        const reply = replied.then(({ data }) => data);
        // A caller who awaits the response instead gets the error there.
        reply.catch(() => undefined);
        return Object.assign(reply, { withResponse: () => replied });
      },
    },
  };
}

/** A vector of 4,096 numbers takes 90 KB of JSON; the rest is for an error. */
const mostReplyBytes = ({ input }: EmbeddingsRequest): number =>
  2 ** 20 + (Array.isArray(input) ? input.length : 1) * 2 ** 17;

function jsonIn(text: string, url: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    const start = text.slice(0, 60).replaceAll(/\s+/g, " ");
    throw new Error(`${url} replied with something other than JSON ("${start}…"); is baseURL right?`, { cause: error });
  }
}

/** Some gateways report an error in a reply of status 200: throws it with the status that it names. */
export function throwErrorIn(reply: unknown, headers: unknown): void {
  const { data, error } = (reply ?? {}) as { readonly data?: unknown; readonly error?: unknown };
  if (data !== undefined || error === undefined || error === null) return;
  const fields = (typeof error === "object" ? error : { message: error }) as Readonly<Record<string, unknown>>;
  const { message, code, param, type } = fields;
  const status = statusIn(fields);
  const words = `${status} ${typeof message === "string" ? message : "The API replied with an error."}`.slice(0, 2000);
  throw Object.defineProperty(Object.assign(new Error(words), { status, code, param, type }), "headers", { value: headers }); // prettier-ignore
}

/** The status that an error in a reply names, else 502. */
export function statusIn({ code, status }: { readonly code?: unknown; readonly status?: unknown }): number {
  const named = [status, code].map(Number).find((number) => Number.isInteger(number) && number >= 400 && number <= 599);
  return named ?? 502;
}

/** An API's refusal, with the names that openai's client uses. */
export class OpenAIError extends Error {
  override readonly name = "OpenAIError";
  readonly status: number;
  readonly code: string | undefined;
  readonly param: string | undefined;
  readonly type: string | undefined;
  declare readonly headers: Headers;

  constructor(response: Response, body: string) {
    const { message, code, param, type } = errorOf(body);
    super(`${response.status} ${message ?? (body.slice(0, 200) || response.statusText)}`);
    this.status = response.status;
    this.code = code;
    this.param = param;
    this.type = type;
    // Not enumerable: no log shows an API's headers.
    Object.defineProperty(this, "headers", { value: response.headers });
  }
}

type ErrorBody = { readonly [name in "message" | "code" | "param" | "type"]?: string };

function errorOf(body: string): ErrorBody {
  try {
    return (JSON.parse(body) as { error?: ErrorBody } | null)?.error ?? {};
  } catch {
    return {};
  }
}
