import type { Responder } from "./responder.ts";
import { webSource } from "../shared/bounded-text.ts";
import { RequestError, replyOf, type Reply } from "./request-error.ts";

/** As `Request → Response`, the shape of a handler in Hono, Next, Bun and Deno. */
export function respondWeb(responder: Responder): (request: Request) => Promise<Response> {
  return async (request) => {
    if (request.bodyUsed || request.body?.locked === true) return responseOf(replyOf(bodyUsed));
    const reply = await responder({
      method: request.method,
      contentType: request.headers.get("content-type"),
      contentLength: request.headers.get("content-length"),
      body: webSource(request.body as ReadableStream<Uint8Array> | null),
      signal: request.signal,
    });
    // A client that has left reads no answer; 499 is for the server's log.
    if (reply === undefined) return new Response(null, { status: 499 });
    return responseOf(reply);
  };
}

const bodyUsed = new RequestError(
  500,
  "BODY_USED",
  "The request's body was read before the batch endpoint got it: call the endpoint before any body parser.",
);

const responseOf = ({ body, status, headers }: Reply): Response => new Response(body, { status, headers });
