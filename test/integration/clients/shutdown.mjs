// Callers of `/infer` over fetch's kept connections, until connections are refused. Takes { url, callers, pauseMs };
// prints the calls by their ids and how each ended: a status, "refused", or the error.
import { text } from "node:stream/consumers";

const { url, callers, pauseMs } = JSON.parse(await text(process.stdin));
const outcomes = {};

async function call(id) {
  const headers = { "content-type": "application/json", "x-request-id": id };
  try {
    const reply = await fetch(`${url}/infer`, { method: "POST", headers, body: '"text"' });
    await reply.text();
    return String(reply.status);
  } catch ({ message, cause }) {
    return cause?.code === "ECONNREFUSED" ? "refused" : `${message}: ${cause?.code} ${cause?.message}`;
  }
}

async function caller(number) {
  for (let i = 0, outcome = ""; outcome !== "refused"; i++) {
    const id = `node-${number}-${i}`;
    outcomes[id] = outcome = await call(id);
    // Every other caller leaves its connection idle now and then.
    if (number % 2 === 1) await new Promise((resolve) => setTimeout(resolve, (7 * i) % pauseMs));
  }
}

await Promise.all(Array.from({ length: callers }, (_, number) => caller(number)));
console.log(JSON.stringify(outcomes));
