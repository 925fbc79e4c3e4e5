// An HTTP service with a few workers that sleep, in a process of its own: a request of n items waits for a worker and takes it for
// `fixedMs + perItemMs · n`. Says its URL.
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

const { workers, fixedMs, perItemMs } = JSON.parse(process.argv[2]);
let free = workers;
const waiting = [];
const server = createServer(async (request, response) => {
  const items = JSON.parse(await text(request));
  if (free > 0) free--;
  else await new Promise((resolve) => waiting.push(resolve));
  await sleep(fixedMs + perItemMs * items.length);
  if (waiting.length > 0) waiting.shift()();
  else free++;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(items));
});
server.listen(0, "127.0.0.1", () => process.send({ url: `http://127.0.0.1:${server.address().port}` }));
process.on("disconnect", () => process.exit());
