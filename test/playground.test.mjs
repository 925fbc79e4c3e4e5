import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { promisify } from "node:util";
import { onDark } from "../packages/sheaf-server/dist/load/report/chart.js";
import { seededRandom } from "../packages/sheaf/dist/internal/tuning.js";
import { argumentsOf, codeOf } from "../scripts/playground/src/command.js";
import { compute } from "../scripts/playground/src/compute.js";
import { itemsOf, pointsOf, tableOf } from "../scripts/playground/src/model.js";
import { playbackOf } from "../scripts/playground/src/playback.js";
import { presetOf, presets } from "../scripts/playground/src/presets.js";
import { defaults, hashOf, numbers, patterns, settingsOf, switches } from "../scripts/playground/src/settings.js";
import { seedsNeeded } from "../scripts/playground/src/verdict.js";
import { root } from "../scripts/lib/files.mjs";
import { playgroundPage } from "../scripts/lib/playground.mjs";

const run = promisify(execFile);
const seed = 46;

/** What the command prints. */
async function fromCommand(settings, ...more) {
  const words = [`${root}/packages/sheaf-server/bin/sheaf.js`, ...argumentsOf(settings), ...more];
  const { stdout } = await run(process.execPath, words, { maxBuffer: 2 ** 26 });
  return stdout;
}

/** Numbers as JSON has them. */
const plain = ({ policy, result }) =>
  JSON.parse(JSON.stringify({ policy, result: { ...result, batchSizes: [...result.batchSizes] } }));

function drawn(random) {
  const any = (list) => list[Math.floor(random() * list.length)];
  const settings = { ...defaults, pattern: any(Object.keys(patterns)) };
  for (const [name, { stops }] of Object.entries(numbers)) settings[name] = any(stops);
  for (const name of Object.keys(switches)) settings[name] = random() < 0.5;
  settings.seed = Math.floor(random() * 1e6);
  return settings;
}

/** Small enough for a test: each costs a process. */
function drawnSmall(random) {
  for (;;) {
    const settings = drawn(random);
    if (itemsOf(settings) <= 4000 && settings.size * settings.slots <= 256) return settings;
  }
}

/** Every message of a computation that runs to its end. */
async function toldOf(settings) {
  const told = [];
  await compute(
    settings,
    (message) => told.push(message),
    () => false,
  );
  return told;
}

/** The points of the page, computed once for settings that several tests look at. */
const computed = new Map();
function pointsOnce(settings) {
  if (!computed.has(settings)) computed.set(settings, pointsOf(settings));
  return computed.get(settings);
}

/** @returns the points of the page. */
async function sameAsCommand(settings) {
  const points = await pointsOnce(settings);
  const theirs = JSON.parse(await fromCommand(settings, "--json")).points;
  assert.deepEqual(
    points.map(plain),
    theirs.map(({ policy, result }) => ({ policy, result })),
    argumentsOf(settings).join(" "),
  );
  return points;
}

for (const { title, settings } of presets)
  test(`"${title}" has every digit of the command line that it shows`, () => sameAsCommand(settings));

test("settings drawn at random have every digit of the command line", async () => {
  const random = seededRandom(seed);
  for (let i = 0; i < 2; i++) {
    const settings = drawnSmall(random);
    const points = await sameAsCommand(settings);
    const lines = (await fromCommand(settings))
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("Capacity"));
    assert.deepEqual(
      tableOf(points),
      lines.map((line) => line.trim().split(/ {2,}/)),
    );
  }
});

test("an address restores its settings, and the defaults need none", () => {
  const random = seededRandom(seed);
  for (let i = 0; i < 500; i++) {
    const settings = drawn(random);
    assert.deepEqual(settingsOf(hashOf(settings)), { settings, ignored: [] });
  }
  assert.equal(hashOf(defaults), "");
  assert.deepEqual(settingsOf(""), { settings: defaults, ignored: [] });
});

test("parts of an address that make no sense are ignored and named", () => {
  const wrong = {
    "rate=-5": "rate=-5: it must be a number from 1 to 5000",
    "rate=1e9": "rate=1e9: it must be a number from 1 to 5000",
    "rate=": "rate=: it must be a number from 1 to 5000",
    "slots=1.5": "slots=1.5: it must be a whole number from 1 to 16",
    "size=99999": "size=99999: it must be a whole number from 1 to 256",
    "padded=true": "padded=true: it must be yes or no",
    "pattern=toString": `pattern=toString: it must be one of ${Object.keys(patterns).join(", ")}`,
    "__proto__=1": "__proto__: there is no such setting",
    "items=1000000000": "items: there is no such setting",
  };
  for (const [text, complaint] of Object.entries(wrong))
    assert.deepEqual(settingsOf(`#${text}`), { settings: defaults, ignored: [complaint] });
  assert.equal(settingsOf("#rate=7&slots=x").settings.rate, 7, "the rest counts");
  const { ignored } = settingsOf(`#${Array.from({ length: 1000 }, (_, i) => `x${i}=${"y".repeat(1000)}`).join("&")}`);
  assert.ok(ignored.length <= 5 && ignored.every((text) => text.length < 200));
});

test("the page says nothing about batching before enough seeds have run, and then only what they support", async () => {
  const rate = (ratePerS) => ({ ...defaults, rate: ratePerS });
  const cases = {
    "do not batch": [
      { ...defaults, pattern: "closed", callers: 1 },
      { ...defaults, fixed: 0, perItem: 1, rate: 500 },
    ],
    "little to gain": [rate(15)],
    batch: [rate(300)],
    "not settled": [rate(38)],
  };
  for (const [word, all] of Object.entries(cases)) {
    for (const settings of all) {
      const told = await toldOf(settings);
      assert.ok(told[0].shown !== undefined);
      assert.deepEqual(
        told.slice(1, -1),
        Array.from({ length: seedsNeeded - 1 }, (_, i) => ({ seeds: i + 1 })),
      );
      assert.equal(told.at(-1).verdict.word, word, JSON.stringify([hashOf(settings), told.at(-1).verdict]));
    }
  }
});

test("a gain of the runs wins over a formula that knows no pattern, and no line of the verdict denies it", async () => {
  const clumps = { ...defaults, pattern: "clump" };
  const cases = [
    { ...clumps, rate: 2 },
    // Batches save 4 % of the run time, which shortens the queue by half.
    { ...defaults, fixed: 0.9, perItem: 10, rate: 90 },
  ];
  for (const settings of cases) {
    const { word, why, because } = (await toldOf(settings)).at(-1).verdict;
    assert.equal(word, "batch", `${hashOf(settings)}: ${why}`);
    assert.match(because, /^the runs decide; the formula, which knows neither bursts nor queues, says: /);
    assert.doesNotMatch(`${why} ${because}`, /(?<!independent) items hardly ever meet|nothing to share/);
  }
});

test("every figure of a story is one of the run that it tells about", async () => {
  for (const { name, settings } of presets) {
    assert.equal(presetOf(settings)?.name, name);
    const others = name === "flood" ? [{ ...settings, seed: 7, fair: false, fixed: 20 }] : [];
    for (const one of [settings, ...others]) {
      let shown;
      await compute(
        one,
        (message) => (shown ??= message.shown),
        () => shown !== undefined,
      );
      const points = await pointsOnce(one);
      const all = points.flatMap(({ result }) => [
        ...[result, ...Object.values(result.tenants ?? {})].flatMap(({ latencyMs }) => Object.values(latencyMs)),
        ...Object.values(result.latencyMsByWeight ?? {}).flatMap((latencyMs) => Object.values(latencyMs)),
        result.goodput?.attemptsPerOperation ?? 1,
      ]);
      const figures = [...shown.story.matchAll(/(\d[\d,.]*\d|\d)(?= (?:ms|s|one at a time|by default)\b)/g)].map(
        ([text]) => text.replaceAll(",", ""),
      );
      assert.ok(figures.length >= 1, shown.story);
      for (const figure of figures)
        assert.ok(
          all.some((value) => [value, value / 1000].some((of) => Math.abs(of - figure) <= 0.006 * of)),
          `${figure}: ${shown.story}`,
        );
      const shares = [...shown.story.matchAll(/([\d.]+) %/g)].map(([, text]) => Number(text));
      const lost = tableOf(points).map((row) => row[tableOf(points)[0].indexOf("lost")]);
      for (const share of shares) assert.ok(lost.includes(`${share} %`), `${share} %: ${shown.story}`);
    }
  }
});

test("the playback has the calls and the runs of the simulation, each call in one run, no slot twice", async () => {
  for (const { settings } of presets) {
    const records = [];
    await pointsOf(settings, { records });
    for (const seen of records) {
      const { rides, trips } = playbackOf(seen, settings, 100);
      assert.ok(rides.length > 0 && rides.length <= 2500);
      const taken = trips.flatMap(({ rides: of }) => of);
      assert.equal(new Set(taken).size, taken.length);
      for (const [at, { slot, atMs, runMs, rides: of }] of trips.entries()) {
        for (const ride of of) assert.deepEqual([rides[ride].startMs, rides[ride].run], [atMs, at]);
        const next = trips.slice(at + 1).find((trip) => trip.slot === slot);
        assert.ok(next === undefined || next.atMs >= atMs + runMs - 1e-6);
      }
      const answered = rides.filter(({ end, atMs }) => end === "ok" && atMs >= trips[0].atMs);
      for (const { startMs, endMs } of answered.slice(0, 500)) assert.ok(startMs <= endMs);
    }
  }
});

test("the code that the page shows runs", async () => {
  const random = seededRandom(seed);
  const all = [...presets.map(({ settings }) => settings), ...Array.from({ length: 20 }, () => drawn(random))];
  const bodies = all.map((settings) => codeOf(settings).replace(/^import .*\n/, ""));
  const script = `import { createBatcher } from "sheaf";
    const runBatch = async (items) => items.map(({ tokens }) => tokens * 2);
    const item = { tokens: 21, tenant: "a" };
    ${bodies.map((body) => `{ ${body}\nif (result !== 42) throw new Error(String(result)); }`).join("\n")}`;
  await run(process.execPath, ["--input-type=module", "--eval", script], { cwd: root });
});

test("the page is one file without a network, and its script stays below 73 kB", async (context) => {
  const { html, scriptBytes } = await playgroundPage();
  context.diagnostic(`the script has ${scriptBytes} bytes gzipped`);
  assert.ok(scriptBytes <= 73_000, `${scriptBytes} bytes gzipped`);
  assert.doesNotMatch(html, /<(?:script|img|link|iframe)[^>]* (?:src|href)="(?!data:)/);
  assert.doesNotMatch(html, /\b(?:fetch|XMLHttpRequest|WebSocket|EventSource|importScripts|sendBeacon)\(/);
  assert.equal(html.match(/<\/script>/g)?.length, 1);
});

test("the three ways have the colours of the reports, on light and dark", () => {
  const style = readFileSync(`${root}/scripts/playground/style.css`, "utf8");
  const pairs = [...style.matchAll(/--(?:unbatched|fifo|auto): light-dark\((#\w+), (#\w+)\)/g)];
  const known = Object.fromEntries(Object.entries(onDark).map((pair) => pair.map((colour) => colour.toLowerCase())));
  assert.equal(pairs.length, 3);
  for (const [, light, dark] of pairs) assert.equal(known[light], dark);
});
