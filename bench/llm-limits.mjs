/**
 * `npm run bench -- llm-limits [--minutes 60] [--seed 1] [--real]`: calls of a language model by 20 tenants of one key, half of them
 * streams. Each tenant has three calls that wait or run; then one of them has sixty; then users call beside an endless bulk job. On
 * the virtual clock, or all at once on the system's. The first minute is not counted, and of waits beside bulk the first five.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { pacedCalls } from "../packages/sheaf/dist/adapters/llm/index.js";
import { systemClock } from "../packages/sheaf/dist/core/runtime/runtime.js";
import { seededRandom } from "../packages/sheaf/dist/internal/tuning.js";
import { virtualClock } from "../packages/sheaf/dist/testing/index.js";
import { limitedLlmApi } from "../test/fakes/limited-llm-api.mjs";
import { machine, table } from "./lib/machine.mjs";

const text = (value) => ({ type: "string", default: value });
const { values } = parseArgs({ options: { minutes: text("60"), seed: text("1"), real: { type: "boolean" } } });
const minutes = Number(values.minutes);
const seed = Number(values.seed);
const tenants = 20;
const minuteMs = 60_000;

/** `load`: "equal", "greedy" or "bulk". */
async function drive(apiOptions, maxTokens, load) {
  const clock = values.real ? systemClock : virtualClock();
  const sleep = (ms) => new Promise((resolve) => clock.after(ms, resolve));
  const random = seededRandom(seed);
  const api = limitedLlmApi({ clock, ...apiOptions });
  const options = { clock, fairKey: ({ tenant }) => tenant };
  const calls = pacedCalls(({ body }, { signal }) => api.call(body, signal), options);
  const beginsMs = clock.now() + (load === "bulk" ? 5 : 1) * minuteMs;
  const endsMs = clock.now() + minutes * minuteMs;
  const waits = Array.from({ length: tenants }, () => []);
  let failed = 0;

  const bodyOf = () => {
    const answer = Math.max(1, Math.round(-200 * Math.log(1 - random())));
    const messages = [{ role: "user", content: "some words ".repeat(10 + Math.floor(random() * 150)) }];
    return { messages, answer, stream: random() < 0.5, ...(maxTokens && { max_tokens: Math.max(answer, maxTokens) }) };
  };
  const one = async (tenant, priority) => {
    const body = bodyOf();
    const fromMs = clock.now();
    try {
      const { data } = await calls({ ...body, tenant, body }, { priority });
      const tookMs = 400 + (body.stream ? 0 : body.answer * 10);
      if (fromMs >= beginsMs && fromMs < endsMs) waits[tenant].push(clock.now() - fromMs - tookMs);
      if (body.stream) for await (const chunk of data) void chunk;
    } catch {
      failed++;
      await sleep(1000);
    }
  };
  const again = async (tenant, priority) => {
    while (clock.now() < endsMs) await one(tenant, priority);
  };
  /** Three calls a minute. */
  const user = async (tenant) => {
    for (;;) {
      await sleep((-Math.log(1 - random()) * minuteMs) / 3);
      if (clock.now() >= endsMs) return;
      void one(tenant);
    }
  };
  const ofFirst = { equal: 3, greedy: 60, bulk: 300 }[load];
  for (let i = 0; i < ofFirst; i++) void again(0, load === "bulk" ? "bulk" : undefined);
  for (let tenant = 1; tenant < tenants; tenant++) {
    if (load === "bulk") void user(tenant);
    else for (let i = 0; i < 3; i++) void again(tenant);
  }
  await sleep(minuteMs);
  const first = api.counts();
  await sleep((minutes - 1) * minuteMs);
  const last = api.counts();
  const of = (count) => last[count] - first[count];
  const share = (amount, limit = Infinity) => amount / limit / (minutes - 1);
  return {
    failed,
    used: Math.max(
      share(of("requests") - of("refused"), apiOptions.requests),
      share(of("input") + of("output"), apiOptions.tokens),
      share(of("input"), apiOptions.input),
      share(of("output"), apiOptions.output),
    ),
    refusedRate: of("refused") / of("requests"),
    p99s: waits.slice(1).map((list) => quantile(list, 0.99)),
    p99: quantile(waits.slice(1).flat(), 0.99),
    worst: quantile(waits.slice(1).flat(), 1),
  };
}

function quantile(list, of) {
  return list.toSorted((a, b) => a - b)[Math.min(list.length - 1, Math.floor(of * list.length))];
}

const random = seededRandom(seed);
const drawn = (least, most) => Math.round(least + (most - least) * random());
const limits = () => ({ requests: drawn(200, 1000), tokens: drawn(60_000, 260_000) });
const apart = { style: "anthropic", requests: drawn(300, 1000), input: drawn(50_000, 150_000), output: drawn(20_000, 60_000) }; // prettier-ignore
const providers = {
  told: [limits()],
  "told, max_tokens 800": [limits(), 800],
  "told, ten seconds at once": [{ ...limits(), shape: "10s" }],
  "told, input and output apart": [apart],
  "told, requests": [{ requests: drawn(60, 200) }],
  "429 alone": [{ ...limits(), tells: false }],
  "429 alone, ten seconds at once": [{ ...limits(), tells: false, shape: "10s" }],
  "429 alone, requests": [{ requests: drawn(60, 200), tells: false }],
};

const row = async ([name, [api, maxTokens]]) => {
  const drives = ["equal", "greedy", "bulk"].map((load) => () => drive(api, maxTokens, load));
  const outcomes = [];
  if (values.real) outcomes.push(...(await Promise.all(drives.map((start) => start()))));
  else for (const start of drives) outcomes.push(await start());
  const [equal, greedy, bulk] = outcomes;
  const ratio = Math.max(...greedy.p99s.map((p99, i) => p99 / equal.p99s[i]));
  const each = (of) => outcomes.map(of).join(", ");
  const { requests, tokens, input, output } = api;
  return [
    name,
    [requests, tokens, input, output].filter(Boolean).join(" / "),
    each(({ used }) => used.toFixed(3)),
    each(({ refusedRate }) => (100 * refusedRate).toFixed(2)),
    each(({ failed }) => failed),
    ratio.toFixed(2),
    Math.round(bulk.p99),
    Math.round(bulk.worst),
  ];
};
const head = ["provider", "limits a minute", "used: equal, greedy, bulk", "refused %", "failed", "quiet p99 ÷ equal", "users p99 ms", "worst"]; // prettier-ignore
const rows = [head];
const pauses = monitorEventLoopDelay({ resolution: 10 });
pauses.enable();
const entries = Object.entries(providers);
if (values.real) rows.push(...(await Promise.all(entries.map(row))));
else for (const entry of entries) rows.push(await row(entry));
console.log(machine());
console.log(table(rows));
if (values.real) console.log(`The longest pause of this process took ${Math.round(pauses.max / 1e6)} ms.`);
process.exit();
