/**
 * `npm run bench -- request-sizes [--rounds 20]`: rounds of good texts, all of a round at once, to an API that takes so much in a
 * request and refuses more in words of a public report; virtual clock. Prints for each limit and wording how many texts failed, and
 * the requests as a multiple of the fewest possible: in the first and second round, and from the tenth on with the share that was refused.
 */
import { parseArgs } from "node:util";
import { openaiEmbeddings, openaiFetch } from "../packages/sheaf/dist/adapters/openai/index.js";
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

async function drive(limit, wording) {
  const clock = virtualClock();
  const api = sizeLimitedApi({ clock, limit, wording });
  const maxBatchSize = limit.maxBatchSize ?? 100;
  const client = openaiFetch({ baseURL: "http://api.invalid/v1", fetch: api.fetch });
  const embed = openaiEmbeddings(client, { model: "m", clock, maxBatchSize });
  const seen = [];
  for (let round = 0; round < rounds; round++) {
    const texts = textsOf(limit, round);
    const before = api.counts();
    const outcomes = await embed.settle(texts);
    const { requests, refused } = api.counts();
    seen.push({
      failed: outcomes.filter(({ status }) => status === "rejected").length,
      requests: requests - before.requests,
      refused: refused - before.refused,
      fewest: fewestRequests(texts, limit, maxBatchSize),
    });
    await clock.sleep(1000);
  }
  await embed.close();
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
for (const [name, limit] of Object.entries(sizeLimits)) {
  if (values.only !== undefined && !name.includes(values.only)) continue;
  const outcomes = [];
  for (const wording of Object.keys(wordings)) outcomes.push({ wording, ...(await drive(limit, wording)) });
  const worst = (list, of) => Math.max(...list.map(of)).toFixed(2);
  for (const isNamed of [true, false]) {
    const list = outcomes.filter(({ wording }) => names(wording, limit) === isNamed);
    if (list.length === 0) continue;
    const ratios = [0, 1, 2].map((at) => worst(list, (each) => each.ratios[at]));
    const refused = `${(100 * Math.max(...list.map((each) => each.refused))).toFixed(1)} %`;
    rows.push([name, `${list.length} that ${isNamed ? "name the limit" : "do not"}`, list.reduce((sum, each) => sum + each.failed, 0), ...ratios, refused]); // prettier-ignore
  }
  if (values.all) for (const each of outcomes) console.log(name, "|", each.wording, "|", each.failed, each.ratios.map((ratio) => ratio.toFixed(2)).join(" "), each.refused.toFixed(3)); // prettier-ignore
}
console.log(table(rows));
