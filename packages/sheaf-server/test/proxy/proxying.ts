import type { TestContext } from "node:test";
import { createProxy, type SheafProxy } from "../../dist/index.js";
import type { Settings } from "../../dist/settings/settings.js";
import { get, post, type Reply } from "../asking.js";

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
  return Object.assign(proxy, {
    url,
    get: (path: string, headers?: Record<string, string>) => get(url + path, headers),
    embed: (
      input: unknown,
      {
        key = "sk-a",
        headers = {},
        signal,
        ...parameters
      }: { key?: string; headers?: Record<string, string>; signal?: AbortSignal } = {},
    ) =>
      post(`${url}/v1/embeddings`, { model: "tiny", input, ...parameters }, { authorization: `Bearer ${key}`, ...headers }, signal), // prettier-ignore
  });
}
