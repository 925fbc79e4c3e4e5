/**
 * `npm run bench -- provider-limits [--minutes 6] [--seed 1]`: 1,500 callers of an embeddings API that allows 300,000 tokens
 * and 3,000 requests a minute, counted with cl100k, on the virtual clock. Prints the share of the token limit that they use
 * after the first minute, the refusals, and the calls that failed, for the texts, shapes and headers of an API.
 */
import { parseArgs } from "node:util";
import { openaiEmbeddings, openaiFetch } from "../packages/sheaf/dist/adapters/openai/index.js";
import { createRateLimit } from "../packages/sheaf/dist/index.js";
import { machine, table } from "./lib/machine.mjs";
import { drive } from "./lib/provider-limits.mjs";

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "6" }, seed: { type: "string", default: "1" } },
});
const minutes = Number(values.minutes);
const seed = Number(values.seed);
if (!(Number.isInteger(minutes) && minutes >= 2 && Number.isInteger(seed))) {
  console.error("--minutes must be an integer >= 2, and --seed an integer");
  process.exit(2);
}

const numbers = { runs: 3000, weight: 300_000, perMs: 60_000 };
const batcherOf = (api, clock, rateLimit) =>
  openaiEmbeddings(openaiFetch({ baseURL: "http://fake.invalid/v1", apiKey: "key", fetch: api.fetch }), {
    model: "tiny",
    clock,
    rateLimit,
  });
const alone = (rateLimit) => (api, clock) => [batcherOf(api, clock, rateLimit)];
const sharing = (given) => (api, clock) => {
  const limit = createRateLimit({ limits: given });
  return [batcherOf(api, clock, limit), batcherOf(api, clock, limit)];
};
/** Tightened tenfold for a minute and a half. */
const tightened = (api, clock) => {
  clock.at(130_000, () => api.setLimits({ tokensPerMinute: 30_000, requestsPerMinute: 300 }));
  clock.at(220_000, () => api.setLimits({ tokensPerMinute: 300_000, requestsPerMinute: 3000 }));
};

const mixed = { kind: "mixed" };
const scenarios = {
  ...Object.fromEntries(
    ["English", "code", "Chinese", "base64", "mixed"].map((kind) => [
      `right numbers, ${kind}`,
      { kind, make: alone(numbers) },
    ]),
  ),
  "no numbers": { ...mixed, make: alone() },
  "no numbers, only Retry-After": { ...mixed, make: alone(), api: { style: "voyage" } },
  "no numbers, only 429": { ...mixed, make: alone(), api: { headers: false } },
  "right numbers, only 429": { ...mixed, make: alone(numbers), api: { headers: false } },
  "two batchers share a limit": { ...mixed, make: sharing(numbers) },
  "the same, no numbers": { ...mixed, make: sharing() },
  "the same, one of them idle": { ...mixed, make: sharing(numbers), batcherOf: () => 0 },
  "two batchers that do not know of each other": {
    ...mixed,
    make: (api, clock) => [batcherOf(api, clock, numbers), batcherOf(api, clock, numbers)],
  },
  "tightened tenfold and widened again": { ...mixed, make: alone(), during: tightened },
  "the same, only 429": { ...mixed, make: alone(), api: { headers: false }, during: tightened },
  "the API takes 96 inputs": { kind: "English", make: alone(numbers), api: { maxInputs: 96 } },
};

const { round } = Math;
const callers = 1500;
console.log(`${machine()}\nnpm run bench -- provider-limits --minutes ${minutes} --seed ${seed}\n`);
const rows = [["", "bucket", "used", "429 a minute", "requests a minute", "400 in all", "calls that failed"]];
for (const [name, { api, ...scenario }] of Object.entries(scenarios)) {
  for (const shape of ["minute", "10s"]) {
    const outcome = await drive({ ...scenario, api: { ...api, shape }, callers, minutes, seed });
    const { refused, requests, wrong, failed, limit } = outcome;
    const perMinute = (count) => (count / (minutes - 1)).toFixed(1);
    const used = (outcome.tokens / limit).toFixed(3);
    rows.push([name, shape, used, perMinute(refused), round(requests / (minutes - 1)), wrong, failed]);
    if (process.stderr.isTTY) process.stderr.write(`\r${rows.length - 1} of ${2 * Object.keys(scenarios).length} `);
  }
}
console.log(table(rows));
