import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";

/** Holds new requests back from the server's listeners. @returns a function that releases them and stops holding. */
export function holdRequests(server: Server): () => void {
  const listeners = server.listeners("request") as RequestListener[];
  const held: [IncomingMessage, ServerResponse][] = [];
  const hold: RequestListener = (request, response) => void held.push([request, response]);
  server.removeAllListeners("request").on("request", hold);
  return () => {
    server.off("request", hold);
    for (const listener of listeners) server.on("request", listener);
    for (const [request, response] of held) if (!response.destroyed) server.emit("request", request, response);
  };
}
