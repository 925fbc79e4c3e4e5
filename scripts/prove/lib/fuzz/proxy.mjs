import fc from "fast-check";
import { embeddingApi, vectorOf } from "../../../../test/fakes/embedding-api.mjs";
import { attack, victim } from "./attack.mjs";
import { cases, keys } from "./proxy-cases.mjs";

const chunk = 500;
const basePath = "/base/v1";

/**
 * Sends `count` seeded cases to `sheaf proxy`, a good request right after each. Gives the statuses (`ends`) by kind of case,
 * the number of requests that the API behind it got (`passed`), and the proxy's state before and after.
 * @throws {Error} naming seed and case: a 5xx, no answer, a wrong reply, a request outside of the base path or with
 *   another caller's key, or a proxy that ended.
 */
export async function fuzzProxy({ count, seed, progress = () => undefined }) {
  const api = await embeddingApi();
  const proxy = await victim("proxy-server.mjs", `${api.url}${basePath}`);
  const good = (number) => goodRequest(proxy.url, number);
  const ends = {};
  let passed = 0;
  try {
    await good(0);
    const before = await proxy.report();
    for (let done = 0; done < count; done += chunk) {
      const seedOfChunk = seed + done;
      const sample = fc.sample(cases(), { seed: seedOfChunk, numRuns: Math.min(chunk, count - done) });
      await attack(proxy.url, sample, { seed: seedOfChunk, ends, good });
      passed += api.requests.length + api.others.length;
      for (const { url } of [...api.requests, ...api.others])
        if (!isBelow(url)) throw new Error(`seed ${seedOfChunk}: the API was asked for ${url}`);
      for (const { headers, inputs } of api.requests) checkKeys(headers, inputs, seedOfChunk);
      api.requests.length = api.others.length = 0;
      progress(done + sample.length);
    }
    await proxy.untilIdle();
    return { ends, passed, before, after: await proxy.report() };
  } finally {
    await proxy.end();
    await api.close();
  }
}

/** As an API reads a path that decodes it once and takes a backslash for a slash. */
function isBelow(url) {
  const [path] = url.split("?");
  const open = [];
  for (const segment of path
    .replaceAll(/%2e/gi, ".")
    .replaceAll(/%2f|%5c|\\/gi, "/")
    .split("/"))
    if (segment === "..") open.pop();
    else if (segment !== "." && segment !== "") open.push(segment);
  return `/${open.join("/")}/`.startsWith(`${basePath}/`);
}

function checkKeys({ authorization }, inputs, seed) {
  for (const input of inputs) {
    const own = keys.find((key) => typeof input === "string" && input.startsWith(`${key} `));
    if (own !== undefined && authorization !== `Bearer ${own}`)
      throw new Error(`seed ${seed}: ${JSON.stringify(input)} was sent with ${authorization}`);
  }
}

async function goodRequest(url, number) {
  const key = keys[number % keys.length];
  const input = `${key} good ${number}`;
  const response = await fetch(`${url}/v1/embeddings`, {
    method: "POST",
    body: JSON.stringify({ model: "tiny", input }),
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
  });
  const text = await response.text();
  const vector = response.status === 200 ? JSON.parse(text).data[0].embedding : undefined;
  if (JSON.stringify(vector) !== JSON.stringify(vectorOf(input)))
    throw new Error(`the good request after it got ${response.status} ${text.slice(0, 300)}`);
}
