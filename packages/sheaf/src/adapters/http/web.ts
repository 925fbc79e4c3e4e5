import type { Answer } from "./answer.ts";
import { webSource } from "./bounded-text.ts";

/** As `Request → Response`: what Hono, Next, Bun and Deno serve. */
export function answerWeb(answer: Answer): (request: Request) => Promise<Response> {
  return async (request) => {
    const reply = await answer({
      method: request.method,
      contentType: request.headers.get("content-type"),
      contentLength: request.headers.get("content-length"),
      body: webSource(request.body as ReadableStream<Uint8Array> | null),
      signal: request.signal,
    });
    // Nobody reads what a client that has gone is answered; 499 is for the server's log.
    if (reply === undefined) return new Response(null, { status: 499 });
    return new Response(reply.body, { status: reply.status, headers: reply.headers });
  };
}
