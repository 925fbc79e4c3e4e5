/**
 * `npm run prove -- chaos [--minutes 10] [--seed 1] [--only WORD]`: the running stack under random load and random faults, with a
 * checker that knows every request sent and every answer seen. Three `sheaf serve` processes (worker threads, worker
 * processes, a model in Python) whose workers and selves are killed, stopped and drained; `sheaf proxy` between two tenants and
 * an API that fails in every way; a fleet of gateways and workers over HTTP, all of whose processes are killed, also by items;
 * another one on a cluster of three NATS servers, which are killed, two at a time too; and the batcher in this process, through
 * storms of calls and on a clock that jumps. Nothing may be lost, answered twice, hung or wrong.
 */
import { parseArgs } from "node:util";
import { machine, table } from "../../bench/lib/machine.mjs";
import { chaosInProcess } from "./lib/chaos/batcher-part.mjs";
import { announceEnd } from "./lib/chaos/ending.mjs";
import { chaosOnCluster, chaosOnFleet } from "./lib/chaos/fleet-part.mjs";
import { Ledger } from "./lib/chaos/ledger.mjs";
import { chaosThroughProxy } from "./lib/chaos/proxy-part.mjs";
import { chaosOnServer } from "./lib/chaos/server-part.mjs";
import { standstills } from "./lib/chaos/standstill.mjs";
import { whyNoNats } from "../../test/support/nats-server.mjs";
import { skipWithoutPython } from "../../test/support/python.mjs";
import { seededRandom } from "../../packages/sheaf/dist/internal/tuning.js";
import { drawing } from "./lib/random.mjs";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    only: { type: "string", default: "" },
  },
});
const minutes = Number(values.minutes);
const seed = Number(values.seed);
const { only } = values;
if (!(minutes >= 0.1 && minutes <= 120) || !Number.isInteger(seed)) {
  console.error(`--minutes takes 0.1 to 120 and --seed an integer, got ${JSON.stringify(values)}`);
  process.exit(2);
}
console.log(`${machine()}\nnpm run prove -- chaos --minutes ${minutes} --seed ${seed}\n`);
// Each part ends its processes when this one ends.
process.setMaxListeners(60);
const hasNats = whyNoNats() === undefined;
const hasPython = skipWithoutPython === false;
const seconds = 60 * minutes;
const isDone = announceEnd(seconds);
// A stream for each part: what one draws does not depend on how fast another is.
const draw = (part) => drawing(seededRandom(1000 * seed + part));
const named = {
  "server with worker processes": () => chaosOnServer("process", { seconds, draw: draw(1) }),
  "server with worker threads": () => chaosOnServer("thread", { seconds, draw: draw(2) }),
  ...(hasPython && { "server with Python workers": () => chaosOnServer("python", { seconds, draw: draw(7) }) }),
  "batcher on a jumping clock": () => chaosInProcess({ seconds, draw: draw(3) }),
  "sheaf proxy": () => chaosThroughProxy({ seconds, draw: draw(6) }),
  ...(hasNats && {
    "fleet over HTTP": () => chaosOnFleet({ seconds, draw: draw(9) }),
    "fleet on a NATS cluster": () => chaosOnCluster({ seconds, draw: draw(10) }),
  }),
};
const chosen = Object.entries(named).filter(([name]) => name.includes(only));
if (chosen.length === 0) {
  console.error(`No part's name holds ${JSON.stringify(only)}. They are: ${Object.keys(named).join(", ")}`);
  process.exit(2);
}
const parts = await Promise.all(chosen.map(([name, start]) => toItsEnd(name, start())));

const columns = ["sent", "answered", "lost", "twice", "hung", "wrong"];
console.log(
  table([
    ["part", "sent", "answered", "lost", "answered twice", "hung", "wrong result"],
    ...parts.map(({ name, ledger }) => [name, ...columns.map((column) => ledger[column])]),
    ["all", ...columns.map((column) => parts.reduce((sum, { ledger }) => sum + ledger[column], 0))],
  ]),
);
for (const { name, ledger, faults, exits } of parts) {
  console.log(`\n${name}\n  answers: ${listed(ledger.outcomes)}\n  faults: ${listed(faults)}`);
  if (exits !== undefined) console.log(`  exits: ${listed(exits)}`);
  for (const example of ledger.examples) console.log(`  ✖ ${example}`);
}
const crashes = parts.flatMap(({ crash }) => (crash === undefined ? [] : [crash]));
for (const crash of crashes) console.error(`✖ ${crash}`);
const { times, stoodMs } = standstills();
if (times > 0) console.log(`\nThe machine stood still ${times} times, for ${Math.round(stoodMs / 1000)} s in all.`);
const isKept = crashes.length === 0 && parts.every(({ ledger }) => ledger.isKept);
console.log(isKept ? "\nEvery request had its one answer." : `\nA promise was broken (seed ${seed}).`);
isDone();
process.exit(isKept ? 0 : 1);

/** A part that cannot go on has broken a promise too; the others still say what they saw. */
function toItsEnd(name, part) {
  return part.catch((error) => {
    console.error(`✖ ${name} ended early: ${error.stack}`);
    return { name, ledger: new Ledger(), faults: {}, crash: `${name} ended early: ${error.message}` };
  });
}

function listed(counts) {
  return Object.entries(counts)
    .sort(([, a], [, b]) => b - a)
    .map(([what, times]) => `${what} ${times}`)
    .join(", ");
}
