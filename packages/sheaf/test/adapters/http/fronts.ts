import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import Fastify from "fastify";
import type { Endpoint } from "../../../dist/adapters/http/index.js";

/** Asks an endpoint as a server of one kind does. */
export type Ask = (init: {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array;
  readonly signal?: AbortSignal;
}) => Promise<Response>;

/** The ways in which an endpoint is mounted; each listens for real where its server does. */
export const fronts = {
  web: async (_t: TestContext, endpoint: Endpoint<any, any>): Promise<Ask> => {
    return (init) => endpoint.fetch(new Request("http://here/batch", { method: "POST", ...init }));
  },
  fastify: async (t: TestContext, endpoint: Endpoint<any, any>): Promise<Ask> => {
    const app = Fastify();
    await app.register(endpoint.fastify, { url: "/batch" });
    t.after(() => app.close());
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    return (init) => fetch(`${url}/batch`, { method: "POST", ...init });
  },
};

export const json = { "content-type": "application/json" };
export const asking = (items: unknown, more: object = {}): { headers: Record<string, string>; body: string } => ({
  headers: json,
  body: JSON.stringify({ items, ...more }),
});

/** The reply's results, for comparison. */
export async function resultsOf(response: Response): Promise<any[]> {
  const body = (await response.json()) as { results: any[] };
  return body.results;
}

/** A plain HTTP server on a free port; gives its URL. */
export async function listening(
  t: TestContext,
  respond: (request: IncomingMessage, body: string, response: ServerResponse) => unknown,
): Promise<string> {
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text) => (body += text));
    request.on("end", () => void respond(request, body, response));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/batch`;
}
