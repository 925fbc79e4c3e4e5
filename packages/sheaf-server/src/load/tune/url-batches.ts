import { masked } from "../../shared/masked.ts";
import { CommandFailure, parsedUrl } from "../../shared/failure.ts";
import { templateFor } from "../http/probe.ts";
import { itemsFromTemplate } from "../payload.ts";
import { oneLine } from "../result-table.ts";
import type { TuneTarget } from "./target.ts";

export interface UrlBatchesOptions {
  readonly target: string;
  /** undefined: asked of the server. */
  readonly items: readonly unknown[] | undefined;
  readonly slots: number;
  readonly seed: number;
  /** Of every request. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * One batch is one request that holds all of its items: `{"inputs": […]}`, or `{"input": […]}` at `/v1/embeddings`. Times include the
 * round trip; a server that splits requests shows up as steps.
 */
export async function urlBatches(options: UrlBatchesOptions): Promise<TuneTarget> {
  const url = parsedUrl(options.target);
  if (url.pathname === "/") url.pathname = "/infer";
  const openai = url.pathname.endsWith("/v1/embeddings");
  const items = options.items ?? (await askedItems(url, options));
  const { headers, timeoutMs } = options;

  async function run(batch: unknown[], { signal }: { readonly signal: AbortSignal }): Promise<unknown[]> {
    const body = JSON.stringify(openai ? { model: "default", input: batch } : { inputs: batch });
    const text = await post(url, body, AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]), {
      headers,
      timeoutMs,
    });
    const reply = JSON.parse(text) as { outputs?: unknown[]; data?: unknown[] };
    const results = (openai ? reply.data : reply.outputs) ?? [];
    return results.map((result) => {
      const error = (result as { error?: { message?: string } } | null)?.error;
      return error === undefined ? result : new CommandFailure(`${masked(url.href)} refused an item: ${error.message}`);
    });
  }
  return {
    run,
    sample: (index) => items[index % items.length],
    slots: options.slots,
    // The server tests its own models; a request's batch cannot be compared from outside.
    selfTest: async () => ({}),
    close: async () => undefined,
  };
}

async function post(
  url: URL,
  body: string,
  signal: AbortSignal,
  { headers, timeoutMs }: Pick<UrlBatchesOptions, "headers" | "timeoutMs">,
): Promise<string> {
  let reply: Response;
  let text: string;
  try {
    reply = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body,
      signal,
    });
    text = await reply.text();
  } catch (error) {
    const { name, cause } = error as { name?: string; cause?: { code?: string } };
    const how = name === "TimeoutError" ? `no answer within ${timeoutMs} ms` : (cause?.code ?? String(error));
    throw new CommandFailure(`POST ${masked(url.href)} cannot be reached: ${how}.`);
  }
  if (reply.ok) return text;
  throw new CommandFailure(`POST ${masked(url.href)} answered ${reply.status}: ${oneLine(text)}`);
}

async function askedItems(url: URL, { headers, timeoutMs, seed }: UrlBatchesOptions): Promise<unknown[]> {
  const model = /^\/infer\/([^/]+)$/.exec(url.pathname)?.[1];
  const template = await templateFor(url.origin, model, { headers, timeoutMs }, "--item");
  return itemsFromTemplate(template, seed).map((body) => (body as { input: unknown }).input);
}
