/** Answers every request after exactly the given milliseconds: `node bench/load-server.mjs 20`. Writes its port to stdout. */
import { createServer } from "node:net";

const delayMs = Number(process.argv[2]);
const reply = Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
const due = [];
let next = 0;
let spinning = false;

// A timer would be up to a millisecond off: while anything is due, this loop turns without sleeping.
function spin() {
  const nowMs = performance.now();
  while (next < due.length && due[next].atMs <= nowMs) due[next++].socket.write(reply);
  if (next === due.length) {
    due.length = next = 0;
    spinning = false;
    return;
  }
  setImmediate(spin);
}

const server = createServer((socket) => {
  socket.setNoDelay(true).on("error", () => undefined);
  // The bench's requests fit one segment each.
  socket.on("data", () => {
    due.push({ socket, atMs: performance.now() + delayMs });
    if (!spinning) setImmediate(spin);
    spinning = true;
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.on("disconnect", () => process.exit(0));
