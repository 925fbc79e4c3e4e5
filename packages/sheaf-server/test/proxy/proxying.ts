import type { TestContext } from "node:test";
import { createProxy, type SheafProxy } from "../../dist/index.js";
import type { Settings } from "../../dist/settings/settings.js";

export interface ApiRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: any;
  readonly inputs: any[];
  readonly status: number;
  readonly gone: boolean;
}

export interface EmbeddingApi {
  readonly url: string;
  readonly baseURL: string;
  readonly requests: ApiRequest[];
  readonly others: { method: string; url: string; headers: Record<string, string>; body: string }[];
  maxInFlight(): number;
  close(): Promise<void>;
}

const receiver: any = await import(new URL("../../../../test/fakes/embedding-api.mjs", import.meta.url).href);
export const vectorOf: (text: unknown, dimensions?: number) => number[] = receiver.vectorOf;

/** An API with OpenAI's shapes and limits, until the test ends. */
export async function embeddingApi(t: TestContext, options: Record<string, unknown> = {}): Promise<EmbeddingApi> {
  const api = (await receiver.embeddingApi(options)) as EmbeddingApi;
  t.after(() => api.close());
  return api;
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: any;
}

export interface Proxying extends SheafProxy {
  readonly url: string;
  get(path: string, headers?: Record<string, string>): Promise<Reply>;
  embed(
    input: unknown,
    more?: { key?: string; headers?: Record<string, string>; signal?: AbortSignal; [name: string]: unknown },
  ): Promise<Reply>;
}

/** A proxy before it, on a free port. */
export async function proxying(t: TestContext, upstream: string, settings: Partial<Settings> = {}): Promise<Proxying> {
  const proxy = await createProxy({ upstream, settings: { port: 0, logLevel: "silent", ...settings } });
  t.after(() => proxy.close({ graceMs: 0 }));
  const url = await proxy.listen();
  const request = async (path: string, init: RequestInit): Promise<Reply> => {
    const response = await fetch(url + path, init);
    const text = await response.text();
    const isJson = (response.headers.get("content-type") ?? "").includes("json");
    return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : undefined };
  };
  return Object.assign(proxy, {
    url,
    get: (path: string, headers: Record<string, string> = {}) => request(path, { headers }),
    embed: (
      input: unknown,
      {
        key = "sk-a",
        headers = {},
        signal,
        ...parameters
      }: { key?: string; headers?: Record<string, string>; signal?: AbortSignal } = {},
    ) =>
      request("/v1/embeddings", {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${key}`, ...headers },
        body: JSON.stringify({ model: "tiny", input, ...parameters }),
        signal: signal ?? null,
      }),
  });
}
