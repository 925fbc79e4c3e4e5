// A server whose model counts its items: popular queries run once, and every later one comes from the cache.
import assert from "node:assert/strict";
import { createServer } from "sheaf-server";

let ran = 0;
const lengths = {
  name: "lengths",
  input: { kind: "text" },
  output: { kind: "json" },
  run: (texts) => {
    ran += texts.length;
    return texts.map((text) => ({ length: text.length }));
  },
};

const server = await createServer({
  models: [lengths],
  settings: { port: 0, logLevel: "silent", cacheMaxBytes: 10_000_000, cacheTtlMs: 60_000 },
});
const url = await server.listen();

async function ask(body) {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${url}/infer`, { method: "POST", headers, body: JSON.stringify(body) });
  const { output, outputs = [output] } = await response.json();
  return { outputs, cache: response.headers.get("x-sheaf-cache") };
}

for (const body of [{ input: "shoes" }, { input: "shoes" }, { inputs: ["shoes", "red shoes"] }]) {
  const { outputs, cache } = await ask(body);
  console.log(JSON.stringify(body), "→", outputs.map(({ length }) => length).join(", "), `(${cache})`);
}
console.log(`${ran} items ran for 4 that were asked for.`);
assert.equal(ran, 2);
await server.close();
