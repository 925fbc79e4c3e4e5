/**
 * `npm run bench -- text [--servers sheaf,mosec] [--base FOLDER] [--tei FILE] [--classes short,mixed,long]
 * [--callers 1,16,64] [--drives closed,lists,open] [--loads 30,60,80] [--rounds 5] [--seconds 4] [--floor-seconds 1]
 * [--out FOLDER] [--from FOLDER] [--install-only]`: text embeddings beside other servers (mosec, tei, infinity; sheaf-greedy
 * and sheaf-two-workers too) and a floor. One encoder of MiniLM's shape (6 × 384) with seeded weights, ONNX Runtime with two
 * threads a run behind each; the floor is Python without a server, which sorts the texts in view (16, 64 and 512), with runs
 * of 1 to 32 and with runs cut by cost. FOLDER of --base is a built checkout of another version, which joins as `base`; FILE
 * of --tei is the text-embeddings-router that is installed here. All take turns in each round; a cell is the median of the
 * rounds. Short texts have 14 tokens in the mean, mixed ones 45 and up to 512, long ones 425; lists have 32 texts and 16
 * callers. Open loop: Poisson arrivals at LOADS percent of what the first server answered with the most callers. --out keeps
 * the figures, --from reports those of an earlier run. The first run installs the other servers into
 * bench/peers/artifacts; infinity takes 6 GB. Linux. A round takes 21 × floor-seconds a class, and a server 3 × (1 + seconds)
 * for the callers, 1 + 4 × seconds for the lists and 1 + seconds for a load of the open loop: `--classes short,mixed --drives
 * closed,lists --rounds 3` with two servers 8 minutes.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { seededRandom } from "../packages/sheaf/dist/internal/tuning.js";
import { miniLm, writeEncoderFolder } from "../test/support/encoder-folder.mjs";
import { machine } from "./lib/machine.mjs";
import { stealSeconds } from "./lib/process-cpu.mjs";
import { installPython } from "./peers/install.mjs";
import { startServer } from "./peers/server-process.mjs";
import { closedLoop, openLoop } from "./text/drives.mjs";
import { startFloor } from "./text/floor.mjs";
import { reportOf } from "./text/report.mjs";
import { textServers } from "./text/servers.mjs";
import { classes, drawTexts } from "./text/texts.mjs";

const drives = ["closed", "lists", "open"];
const { values: flags } = parseArgs({
  options: {
    servers: { type: "string", default: "sheaf,mosec" },
    base: { type: "string" },
    tei: { type: "string" },
    classes: { type: "string", default: Object.keys(classes).join() },
    callers: { type: "string", default: "1,16,64" },
    drives: { type: "string", default: drives.join() },
    loads: { type: "string", default: "30,60,80" },
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "4" },
    "floor-seconds": { type: "string", default: "1" },
    out: { type: "string" },
    from: { type: "string" },
    "install-only": { type: "boolean", default: false },
  },
});
const plan = {
  classes: listed("classes", flags.classes, Object.keys(classes)),
  callers: flags.callers.split(",").map((count) => number("callers", count, 1, 1024)),
  drives: listed("drives", flags.drives, drives),
  loads: flags.loads.split(",").map((percent) => number("loads", percent, 1, 200) / 100),
  rounds: number("rounds", flags.rounds, 1, 100),
  seconds: number("seconds", flags.seconds, 1, 300),
  floorSeconds: number("floor-seconds", flags["floor-seconds"], 0, 60),
};
const shape = { ...miniLm, maxTokens: 512 };
const views = [16, 64, 512];
/** Lists come back in waves of seconds. */
const listSpans = 4;

if (flags.from !== undefined) {
  publish(JSON.parse(readFileSync(join(flags.from, "figures.json"), "utf8")));
  process.exit();
}
if (flags.servers.split(",").includes("tei") && flags.tei === undefined)
  fail("--servers tei needs --tei FILE, an installed text-embeddings-router");
const folder = mkdtempSync(join(tmpdir(), "sheaf-text-"));
const encoder = writeEncoderFolder(join(folder, "encoder"), shape);
const known = textServers(encoder, flags);
const names = [...listed("servers", flags.servers, Object.keys(known)), ...(flags.base === undefined ? [] : ["base"])];
for (const name of new Set(["text", ...names.map((one) => known[one].python).filter(Boolean)])) installPython(name);
if (!flags["install-only"]) await main();
rmSync(folder, { recursive: true });

async function main() {
  const texts = Object.fromEntries(plan.classes.map((name) => [name, drawTexts(name, seededRandom(1))]));
  const floor = await startFloor(encoder, texts);
  const running = new Map();
  const figures = {
    machine: machine(),
    command: `npm run bench -- text ${process.argv.slice(2).join(" ")}`,
    loadBefore: loadavg()[0],
    plan,
    names,
    cells: [],
  };
  const stealBefore = stealSeconds();
  const startedAtMs = performance.now();
  try {
    const [trial] = Object.values(texts);
    const probe = trial.slice(0, 3).map(({ text }) => text);
    const vectors = await floor.embed(probe);
    for (const name of names) {
      const expected = known[name].unit ? vectors.map(ofLengthOne) : vectors;
      running.set(name, await startServer(name, known[name], probe, expected.flat()));
    }
    for (let round = 0; round < plan.rounds; round++) await measureRound(round, { texts, floor, running, figures });
    figures.stealShare = (stealSeconds() - stealBefore) / ((performance.now() - startedAtMs) / 1000);
    for (const [name, server] of running) figures.cells.push({ name, drive: "memory", value: server.pssMib() });
  } finally {
    await Promise.all([...running.values()].map((server) => server.stop()));
    floor.stop();
  }
  publish(figures);
}

function publish(figures) {
  console.log(reportOf(figures));
  if (flags.out === undefined) return;
  writeFileSync(join(flags.out, "figures.json"), `${JSON.stringify(figures)}\n`);
}

/** Every cell of one round; the servers' order turns by one each round. */
async function measureRound(round, { texts, floor, running, figures }) {
  const order = [...running].map((_, i, all) => all[(i + round) % all.length]);
  /** A server that fails is left out of the cell, and the others go on. */
  const note = async (name, className, drive, load, measured) => {
    const [stealBefore, startedAtMs] = [stealSeconds(), performance.now()];
    const result = await measured().catch((error) => {
      process.exitCode = 1;
      return { failure: error.message };
    });
    result.stealShare = (stealSeconds() - stealBefore) / ((performance.now() - startedAtMs) / 1000);
    figures.cells.push({ name, round, className, drive, load, ...result });
    console.error(`  ${round + 1} ${name} ${className} ${drive} ${load}: ${JSON.stringify(result)}`);
  };
  for (const className of plan.classes) {
    const of = { texts: texts[className], seconds: plan.seconds, seed: round + 1 };
    if (plan.floorSeconds > 0)
      for (const view of views)
        await note("floor", className, "floor", view, () => floor.measure(className, view, plan.floorSeconds));
    if (plan.drives.includes("closed"))
      for (const callers of plan.callers)
        for (const [name, server] of order)
          await note(name, className, "closed", callers, () => closedLoop(server, { ...of, callers, perRequest: 1 }));
    const lists = { callers: 16, perRequest: 32, seconds: listSpans * plan.seconds };
    // 512 long texts at once would take a minute a wave.
    if (plan.drives.includes("lists") && className !== "long")
      for (const [name, server] of order)
        await note(name, className, "lists", 16, () => closedLoop(server, { ...of, ...lists }));
    if (plan.drives.includes("open")) {
      const capacity = capacityOf(figures.cells, names[0], className);
      for (const share of plan.loads)
        for (const [name, server] of order)
          await note(name, className, "open", share, () => openLoop(server, { ...of, ratePerS: share * capacity }));
    }
  }
}

function ofLengthOne(vector) {
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

/** Texts a second of a server's first round with the most callers. */
function capacityOf(cells, name, className) {
  const found = cells.filter((cell) => cell.name === name && cell.className === className && cell.drive === "closed");
  if (found.length === 0) fail("--drives open needs closed as well: its rates are shares of that");
  return found.filter(({ round }) => round === 0).reduce((most, { textsPerS = 0 }) => Math.max(most, textsPerS), 0);
}

function listed(name, text, all) {
  const chosen = text.split(",");
  const unknown = chosen.find((one) => !all.includes(one));
  if (unknown !== undefined) fail(`--${name} must be of ${all.join(", ")}, got ${JSON.stringify(unknown)}`);
  return chosen;
}

function number(name, text, least, most) {
  const value = Number(text);
  if (!(Number.isInteger(value) && value >= least && value <= most))
    fail(`--${name} must be an integer from ${least} to ${most}, got ${JSON.stringify(text)}`);
  return value;
}

function fail(message) {
  console.error(message);
  process.exit(2);
}
