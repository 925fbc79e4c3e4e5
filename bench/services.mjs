/**
 * What coalescing gains with an embeddings API: `npm run bench -- services [--calls 500] [--rounds 5] [--latency-ms 60]
 * [--item-ms 0.5]`. Real clients call an API on this machine that takes 60 ms and half a millisecond per text, once by
 * themselves and once with Sheaf, in turn: requests, time until the last of the calls has its vector, CPU of the caller.
 * Needs the clients: `cd integration && npm ci`. About three minutes.
 */
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { coalesce } from "../packages/sheaf/dist/adapters/ai-sdk.js";
import { CoalescedEmbeddings } from "../packages/sheaf/dist/adapters/langchain.js";
import { openaiEmbeddings } from "../packages/sheaf/dist/adapters/openai/index.js";
import { machine, median, table } from "./lib/machine.mjs";

const { values: flags } = parseArgs({
  options: {
    calls: { type: "string", default: "500" },
    rounds: { type: "string", default: "5" },
    "latency-ms": { type: "string", default: "60" },
    "item-ms": { type: "string", default: "0.5" },
  },
});
const calls = Number(flags.calls);
const rounds = Number(flags.rounds);
const latency = { latencyMs: Number(flags["latency-ms"]), perItemMs: Number(flags["item-ms"]) };
const apiKey = "sk-bench";

const [{ default: OpenAI }, ai, { createOpenAICompatible }, { OpenAIEmbeddings }] = await Promise.all(
  ["openai", "ai", "@ai-sdk/openai-compatible", "@langchain/openai"].map((name) => importClient(name)),
);
const api = fork(new URL("services-api.mjs", import.meta.url), [JSON.stringify(latency)]);
const [{ url }] = await once(api, "message");
const baseURL = `${url}/v1`;

console.log(machine());
console.log(
  `npm run bench -- services --calls ${calls} --rounds ${rounds} --latency-ms ${latency.latencyMs} --item-ms ${latency.perItemMs}`,
);
console.log(`${calls} calls at once, median of ${rounds} rounds:`);
const clients = await clientsOf();
const measured = clients.map(() => ({ alone: [], together: [] }));
for (let round = 0; round <= rounds; round++) {
  for (const [i, { connect }] of clients.entries()) {
    for (const kind of round % 2 === 0 ? ["alone", "together"] : ["together", "alone"]) {
      const result = await measure(connect(kind === "together"));
      if (round > 0) measured[i][kind].push(result); // The first warms up.
    }
  }
}
for (const { close } of clients) await close?.();
api.disconnect();
const cell = (results, name) => median(results.map((result) => result[name]));
console.log(
  table([
    ["client", "requests", "with", "ms", "with", "times faster", "CPU ms", "with"],
    ...clients.map(({ name }, i) => {
      const { alone, together } = measured[i];
      const [slow, fast] = [cell(alone, "ms"), cell(together, "ms")];
      return [
        name, cell(alone, "requests"), cell(together, "requests"), slow.toFixed(0), fast.toFixed(0),
        (slow / fast).toFixed(1), cell(alone, "cpuMs").toFixed(0), cell(together, "cpuMs").toFixed(0),
      ]; // prettier-ignore
    }),
  ]),
);

async function clientsOf() {
  return [
    {
      name: "openai",
      connect: (isTogether) => {
        const client = new OpenAI({ baseURL, apiKey });
        if (isTogether) return openaiEmbeddings(client, { model: "tiny" });
        return (input) => client.embeddings.create({ model: "tiny", input });
      },
    },
    {
      name: "AI SDK 6",
      connect: (isTogether) => {
        const plain = createOpenAICompatible({ name: "local", baseURL, apiKey }).embeddingModel("tiny");
        const model = isTogether ? ai.wrapEmbeddingModel({ model: plain, middleware: coalesce() }) : plain;
        return (value) => ai.embed({ model, value });
      },
    },
    {
      name: "LangChain",
      connect: (isTogether) => {
        const plain = new OpenAIEmbeddings({ model: "tiny", apiKey, configuration: { baseURL } });
        const embeddings = isTogether ? new CoalescedEmbeddings(plain) : plain;
        return (text) => embeddings.embedQuery(text);
      },
    },
    await throughProxy("fifo"),
    await throughProxy("auto"),
  ];
}

/** openai's client with only its address changed, and the proxy in a process of its own. */
async function throughProxy(strategy) {
  const entry = fileURLToPath(new URL("../packages/sheaf-server/bin/sheaf.js", import.meta.url));
  const words = [
    "proxy",
    "--upstream",
    baseURL,
    "--port",
    "0",
    "--log-level",
    "info",
    "--scheduler-strategy",
    strategy,
  ];
  const child = spawn(process.execPath, [entry, ...words], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  let proxyUrl;
  for await (const text of child.stdout.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    proxyUrl = /listening on (http:[^"]+)/.exec((output += text))?.[1];
    if (proxyUrl !== undefined) break;
  }
  child.stdout.resume();
  return {
    name: `openai, sheaf proxy (${strategy})`,
    connect: (isTogether) => {
      const client = new OpenAI({ baseURL: isTogether ? `${proxyUrl}/v1` : baseURL, apiKey });
      return (input) => client.embeddings.create({ model: "tiny", input });
    },
    close: async () => {
      child.kill("SIGTERM");
      await once(child, "close");
    },
  };
}

async function measure(embed) {
  const texts = Array.from({ length: calls }, (_, i) => `Text ${i}, which is about as long as a short sentence is.`);
  await requestsSince();
  const cpu = process.cpuUsage();
  const startedAtMs = performance.now();
  await Promise.all(texts.map((text) => embed(text)));
  const ms = performance.now() - startedAtMs;
  const { user, system } = process.cpuUsage(cpu);
  return { ms, cpuMs: (user + system) / 1000, requests: await requestsSince() };
}

async function requestsSince() {
  api.send({ count: true });
  const [{ requests }] = await once(api, "message");
  return requests;
}

async function importClient(name) {
  const integration = createRequire(new URL("../test/integration/package.json", import.meta.url));
  try {
    return await import(pathToFileURL(integration.resolve(name)).href);
  } catch (error) {
    console.error(`${name} is not installed: cd integration && npm ci (${error.message})`);
    process.exit(1);
  }
}
