import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body, if it is JSON. */
  readonly json: any;
}

export async function ask(url: string, init: RequestInit = {}): Promise<Reply> {
  const response = await fetch(url, init);
  const text = await response.text();
  const isJson = (response.headers.get("content-type") ?? "").includes("json");
  return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : undefined };
}

export const get = (url: string, headers: Record<string, string> = {}): Promise<Reply> => ask(url, { headers });

/** A body that is not a text is sent as JSON. */
export const post = (
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
  signal: AbortSignal | null = null,
): Promise<Reply> =>
  ask(url, {
    method: "POST",
    body: typeof body === "string" ? body : JSON.stringify(body),
    headers: { "content-type": "application/json", ...headers },
    signal,
  });

/** Waits until it holds; what it waits for must come. The test's own time limit ends it. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(5);
}

/** A promise that others settle. */
export function opening(): { readonly opened: Promise<void>; open(): void } {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

/** Listens on a free port until the test ends; its origin. */
export async function listen(t: TestContext, server: Server): Promise<string> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket.on("close", () => sockets.delete(socket))));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The origin of a port on which nobody listens. */
export async function deserted(t: TestContext): Promise<string> {
  const server = createServer();
  const origin = await listen(t, server);
  await once(server.close(), "close");
  return origin;
}
