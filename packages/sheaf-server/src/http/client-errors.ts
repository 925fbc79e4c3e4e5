import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { Problem, problemBody } from "../problems/problem.ts";
import { requestId } from "./request-id.ts";

/** Connections on which a large upload comes in: its own route sees to it that it goes on. */
export const longUploads = new WeakSet<Socket>();

/**
 * Answers bytes that are not an HTTP request, have too many headers, or take too long to arrive; then closes the connection.
 */
export function answerClientErrors(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT" && longUploads.has(socket)) return;
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const problem = problemOf(error.code);
  const body = JSON.stringify(problemBody(problem, requestId({ headers: {} })));
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    "content-type: application/problem+json",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}

function problemOf(code: string | undefined): Problem {
  if (code === "HPE_HEADER_OVERFLOW")
    return new Problem(
      "HEADERS_TOO_LARGE",
      "The headers are larger than 16 KiB, or than node's --max-http-header-size.",
    );
  if (code === "ERR_HTTP_REQUEST_TIMEOUT")
    return new Problem("REQUEST_TIMEOUT", "The request took too long to arrive (UPLOAD_TIMEOUT_MS).");
  return new Problem("BAD_REQUEST", "This is not an HTTP request.");
}
