/**
 * `npm run bench -- request-sizes [--rounds 20]`: rounds of good texts, all of a round at once, to an API that takes so much in a
 * request and refuses more in words of a public report; virtual clock. Prints for each limit and wording how many texts failed, and
 * the requests as a multiple of the fewest possible: in the first and second round, and from the tenth on with the share that was refused.
 * Then the same through the AI SDK's and LangChain's shapes, and through the proxy over HTTP on a real clock, for ten items.
 */
import { createServer } from "node:http";
import { parseArgs } from "node:util";
import { openaiEmbeddings, openaiFetch } from "../packages/sheaf/dist/adapters/openai/index.js";
import { coalesce } from "../packages/sheaf/dist/adapters/ai-sdk.js";
import { CoalescedEmbeddings } from "../packages/sheaf/dist/adapters/langchain.js";
import { createProxy } from "../packages/sheaf-server/dist/index.js";
import { virtualClock } from "../packages/sheaf/dist/testing/index.js";
import { fewestRequests, names, sizeLimitedApi, sizeLimits, textsOf, wordings } from "../test/fakes/size-limits.mjs";
import { machine, table } from "./lib/machine.mjs";

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "20" }, only: { type: "string" }, all: { type: "boolean" } },
});
const rounds = Number(values.rounds);
if (!(Number.isInteger(rounds) && rounds >= 10)) {
  console.error("--rounds must be an integer >= 10");
  process.exit(2);
}

/** Each gives `settle(texts)`, which says of each text whether it failed, and `close()`. */
const doors = {
  openaiEmbeddings: async (api, clock, maxBatchSize) => {
    const client = openaiFetch({ baseURL: "http://api.invalid/v1", fetch: api.fetch });
    const embed = openaiEmbeddings(client, { model: "m", clock, maxBatchSize });
    return {
      settle: async (texts) => (await embed.settle(texts)).map(({ status }) => status === "rejected"),
      close: () => embed.close(),
    };
  },
  "AI SDK, embedMany": async (api, clock) => {
    const doEmbed = async ({ values }) => ({ embeddings: await ask(api, values), warnings: [] });
    const model = { modelId: "m", maxEmbeddingsPerCall: 100, doEmbed };
    const middleware = coalesce({ clock });
    return { settle: (values) => asOne(values, middleware.wrapEmbed({ params: { values }, model })) };
  },
  "LangChain, embedDocuments": async (api, clock) => {
    const plain = {
      embedDocuments: (texts) => ask(api, texts),
      embedQuery: async (text) => (await ask(api, [text]))[0],
    };
    const embeddings = new CoalescedEmbeddings(plain, { clock });
    return { settle: (texts) => asOne(texts, embeddings.embedDocuments(texts)) };
  },
  "proxy, 200 callers": async (api) => {
    const upstream = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      const reply = await api.fetch("", { body });
      response.writeHead(reply.status, { "content-type": reply.headers.get("content-type") });
      response.end(await reply.text());
    });
    await new Promise((resolve) => upstream.listen(0, "127.0.0.1", resolve));
    const settings = { port: 0, logLevel: "silent" };
    const proxy = await createProxy({ upstream: `http://127.0.0.1:${upstream.address().port}/v1`, settings });
    const url = `${await proxy.listen()}/v1/embeddings`;
    const headers = { "content-type": "application/json", authorization: "Bearer sk-a" };
    const call = async (input) => {
      const reply = await fetch(url, { method: "POST", headers, body: JSON.stringify({ model: "m", input }) });
      await reply.arrayBuffer();
      return !reply.ok;
    };
    const close = async () => {
      await proxy.close();
      upstream.closeAllConnections();
      upstream.close();
    };
    return { settle: (texts) => Promise.all(texts.map(call)), close };
  },
};
const ask = async (api, values) => {
  const response = await api.fetch("", { body: JSON.stringify({ input: values }) });
  if (!response.ok) throw Object.assign(new Error(await response.text()), { status: response.status });
  return (await response.json()).data.map(({ embedding }) => embedding);
};
const asOne = (texts, embedded) =>
  embedded.then(
    () => texts.map(() => false),
    () => texts.map(() => true),
  );
/** A twentieth of the times. */
const realClock = { after: (ms, callback) => void setTimeout(() => callback(), ms / 20), sleep: async () => undefined };

async function drive(limit, wording, door = "openaiEmbeddings") {
  const clock = door.startsWith("proxy") ? realClock : virtualClock();
  const api = sizeLimitedApi({ clock, limit, wording });
  const maxBatchSize = limit.maxBatchSize ?? 100;
  const { settle, close } = await doors[door](api, clock, maxBatchSize);
  const seen = [];
  for (let round = 0; round < rounds; round++) {
    const texts = textsOf(limit, round);
    const before = api.counts();
    const outcomes = await settle(texts);
    const { requests, refused } = api.counts();
    seen.push({
      failed: outcomes.filter(Boolean).length,
      requests: requests - before.requests,
      refused: refused - before.refused,
      fewest: fewestRequests(texts, limit, maxBatchSize),
    });
    await clock.sleep(1000);
  }
  await close?.();
  const sum = (list, name) => list.reduce((total, each) => total + each[name], 0);
  const ratio = (list) => sum(list, "requests") / sum(list, "fewest");
  const late = seen.slice(9);
  return {
    failed: sum(seen, "failed"),
    ratios: [ratio(seen.slice(0, 1)), ratio(seen.slice(1, 2)), ratio(late)],
    refused: sum(late, "refused") / sum(late, "requests"),
  };
}

console.log(`${machine()}\nnpm run bench -- request-sizes --rounds ${rounds}\n`);
const rows = [["limit", "words", "failed", "first round", "second", "from the tenth", "refused then"]];
const add = (name, limit, outcomes) => {
  const worst = (list, of) => Math.max(...list.map(of)).toFixed(2);
  for (const isNamed of [true, false]) {
    const list = outcomes.filter(({ wording }) => names(wording, limit) === isNamed);
    if (list.length === 0) continue;
    const ratios = [0, 1, 2].map((at) => worst(list, (each) => each.ratios[at]));
    const refused = `${(100 * Math.max(...list.map((each) => each.refused))).toFixed(1)} %`;
    rows.push([name, `${list.length} that ${isNamed ? "name the limit" : "do not"}`, list.reduce((sum, each) => sum + each.failed, 0), ...ratios, refused]); // prettier-ignore
  }
  if (values.all) for (const each of outcomes) console.log(name, "|", each.wording, "|", each.failed, each.ratios.map((ratio) => ratio.toFixed(2)).join(" "), each.refused.toFixed(3)); // prettier-ignore
};
for (const [name, limit] of Object.entries(sizeLimits)) {
  if (values.only !== undefined && !name.includes(values.only)) continue;
  const outcomes = [];
  for (const wording of Object.keys(wordings)) outcomes.push({ wording, ...(await drive(limit, wording)) });
  add(name, limit, outcomes);
}
for (const door of Object.keys(doors).slice(1)) {
  if (values.only !== undefined && !door.includes(values.only)) continue;
  const limit = sizeLimits["10 items"];
  const outcomes = [];
  for (const wording of Object.keys(wordings)) outcomes.push({ wording, ...(await drive(limit, wording, door)) });
  add(`10 items, ${door}`, limit, outcomes);
}
console.log(table(rows));
