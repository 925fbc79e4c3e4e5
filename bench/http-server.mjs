// One of the servers, in a process of its own: `sheaf`, `cached` (the same with a result cache), or `bare`, a node:http server that parses and serialises the same
// with JSON.parse and JSON.stringify and knows nothing of batches, limits or errors. The models answer at once, so what is
// measured is the way in and out. Answers any message with the CPU time of its process.
import http from "node:http";
import { createServer } from "../packages/sheaf-server/dist/index.js";

const vector = Float32Array.from({ length: 768 }, (_, i) => Math.fround(Math.sin(i + 1)));
const embedding = vector.subarray(0, 384);

if (process.argv[2] === "bare") serveBare();
else await serveSheaf(process.argv[2] === "cached" ? 100_000_000 : 0);
process.on("message", () => process.send({ cpuUs: Object.values(process.cpuUsage()).reduce((a, b) => a + b) }));
process.on("disconnect", () => process.exit(0));

async function serveSheaf(cacheMaxBytes) {
  const floats = {
    name: "floats",
    input: { kind: "floats", length: 768 },
    output: { kind: "vector", length: 768 },
    run: (items) => items.map(() => vector),
  };
  const texts = {
    name: "texts",
    input: { kind: "text", maxTokens: 128 },
    output: { kind: "vector", length: 384 },
    run: (items) => items.map(() => ({ vector: embedding, tokens: 5, truncated: false })),
  };
  const server = await createServer({
    models: [floats, texts],
    settings: { port: 0, logLevel: "silent", cacheMaxBytes },
  });
  const url = await server.listen();
  await server.ready();
  process.send({ url });
}

function serveBare() {
  const server = http.createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const body = JSON.parse(Buffer.concat(chunks).toString("utf8"));
      const json = JSON.stringify(replyTo(request.url, body));
      response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(json) });
      response.end(json);
    });
  });
  server.listen(0, "127.0.0.1", () => process.send({ url: `http://127.0.0.1:${server.address().port}` }));
}

function replyTo(url, body) {
  if (url === "/infer") {
    if (!body.every(Number.isFinite)) throw new Error("not finite");
    Float32Array.from(body); // What the model takes.
    return { model: "floats", output: Array.from(vector) };
  }
  const { buffer, byteOffset, byteLength } = embedding;
  const isBase64 = body.encoding_format === "base64";
  const shown = isBase64 ? Buffer.from(buffer, byteOffset, byteLength).toString("base64") : Array.from(embedding);
  return { object: "list", data: [{ object: "embedding", index: 0, embedding: shown }], model: "texts" };
}
