// Stands in for a remote embeddings API, so that the example runs without a key: OpenAI's shapes, and it refuses an empty
// request, more than 2048 inputs, and the word "poison".
import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";

export async function localApi() {
  const requests = [];
  const server = createServer(async (request, response) => {
    const { input } = JSON.parse(await text(request));
    requests.push(input.length);
    const bad = input.indexOf("poison");
    const isFine = bad < 0 && input.length > 0 && input.length <= 2048;
    const data = input.map((one, index) => ({ index, embedding: [one.length, one.charCodeAt(0)] }));
    const error = { message: `Invalid 'input[${bad}]'.`, param: `input[${bad}]` };
    response.writeHead(isFine ? 200 : 400, { "content-type": "application/json" });
    response.end(JSON.stringify(isFine ? { data, usage: { prompt_tokens: input.length } } : { error }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { baseURL: `http://127.0.0.1:${server.address().port}/v1`, requests, close: () => server.close() };
}
