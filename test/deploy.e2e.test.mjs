// What stands in deploy/ asks for metrics that a server really has.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { after, before, test } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { filesBelow, root } from "../scripts/lib/files.mjs";
import { embeddingApi } from "./fakes/embedding-api.mjs";
import { startNats, whyNoNats } from "./support/nats-server.mjs";

const dashboard = JSON.parse(readFileSync(`${root}/deploy/grafana/sheaf.json`, "utf8"));
/** Rows are closed, and hold the panels of what a plain server has not. */
const rows = dashboard.panels.filter(({ type }) => type === "row");
const openPanels = dashboard.panels.filter(({ type }) => type !== "row");
const panels = [...openPanels, ...rows.flatMap((row) => row.panels)];
const rules = parse(readFileSync(`${root}/deploy/prometheus/sheaf.rules.yml`, "utf8"));
const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;
const skip = !hasPromtool && process.env.CI !== "true" && "promtool is not installed (apt-get install prometheus)";

const scaler = (kind) =>
  filesBelow("deploy/kubernetes/autoscaling", ".yaml")
    .flatMap((file) => parseAllDocuments(readFileSync(file, "utf8")).map((document) => document.toJS()))
    .find((manifest) => manifest.kind === kind);
const keda = scaler("ScaledObject").spec.triggers[0].metadata.query;

/** Every expression: of the dashboard's panels and variables, of the rules, and of the autoscaler. */
const expressions = [
  ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ where: `panel ${title}`, expr }))),
  ...dashboard.templating.list.flatMap(({ name, definition }) =>
    definition === undefined ? [] : [{ where: `variable ${name}`, expr: definition }],
  ),
  ...rules.groups.flatMap(({ rules }) => rules).map(({ alert, expr }) => ({ where: `alert ${alert}`, expr })),
  { where: "autoscaler", expr: keda },
];

const noNats = whyNoNats() ?? false;

let labelsOf; // metric → its labels on a real /metrics
let plain; // the /metrics of a server without any setting
before(async () => {
  const { builtinModels, createServer, defaultSettings, workerModel } = await import(
    `${root}/packages/sheaf-server/dist/index.js`
  );
  const settings = { ...defaultSettings, port: 0, logLevel: "silent" };
  const server = await createServer({ models: [workerModel(builtinModels.mlp(), settings)], settings });
  const url = await server.listen();
  await server.ready();
  const item = Array.from({ length: 768 }, (_, index) => index / 768);
  const infer = async (body) => {
    const headers = { "content-type": "application/json" };
    const reply = await fetch(`${url}/infer`, { method: "POST", headers, body: JSON.stringify(body) });
    assert.equal(reply.status, 200, await reply.text());
  };
  // The range of the speed-up needs runs of several sizes, and the slots needed some seconds: as many rounds as it takes, at most 1000.
  let text = "";
  const late = ["sheaf_speedup_high_ratio{", "sheaf_slots_needed{"];
  for (let round = 0; round < 1000 && !late.every((sample) => text.includes(sample)); round++) {
    for (const size of [1, 1, 4, 8]) await infer({ inputs: Array(size).fill(item) });
    text = await (await fetch(`${url}/metrics`)).text();
    await setTimeout(20);
  }
  await server.close();
  plain = text;
  text += await cacheAndTenantMetrics({ builtinModels, createServer, workerModel, settings });
  text += await proxyMetrics();
  if (!noNats) text += await fleetMetrics({ builtinModels, createServer, workerModel, settings });
  labelsOf = new Map();
  for (const [, name, labels = ""] of text.matchAll(/^([a-z_0-9]+)(?:\{(.*)\})? /gm)) {
    const names = [...labels.matchAll(/(\w+)="/g)].map(([, label]) => label);
    labelsOf.set(name, new Set([...(labelsOf.get(name) ?? []), ...names]));
  }
});

/** Of a server that keeps results and batches, tells its callers apart and has run both lanes. */
async function cacheAndTenantMetrics({ builtinModels, createServer, workerModel, settings }) {
  const batchesDir = mkdtempSync(join(tmpdir(), "sheaf-batches-"));
  const own = { ...settings, cacheMaxBytes: 1_000_000, batchesDir, tenantBy: "header", warmupBatches: 1 };
  const server = await createServer({ models: [workerModel(builtinModels.mlp(), own)], settings: own });
  try {
    const url = await server.listen();
    await server.ready();
    for (const [priority, value] of Object.entries({ interactive: 0.5, bulk: 0.25 })) {
      const headers = { "content-type": "application/json", "x-sheaf-priority": priority };
      const body = JSON.stringify({ input: Array(768).fill(value) });
      const reply = await fetch(`${url}/infer`, { method: "POST", headers, body });
      assert.equal(reply.status, 200, await reply.text());
    }
    return await (await fetch(`${url}/metrics`)).text();
  } finally {
    await server.close();
    rmSync(batchesDir, { recursive: true });
  }
}

/** Of a proxy, whose batchers have a rate limit. */
async function proxyMetrics() {
  const { createProxy } = await import(`${root}/packages/sheaf-server/dist/index.js`);
  const api = await embeddingApi();
  const settings = { port: 0, logLevel: "silent", upstreamRequestsPerMinute: 600 };
  const proxy = await createProxy({ upstream: api.baseURL, settings });
  try {
    const url = await proxy.listen();
    const headers = { "content-type": "application/json", authorization: "Bearer key" };
    const body = JSON.stringify({ model: "tiny", input: "a" });
    const reply = await fetch(`${url}/v1/embeddings`, { method: "POST", headers, body });
    assert.equal(reply.status, 200, await reply.text());
    return await (await fetch(`${url}/metrics`)).text();
  } finally {
    await proxy.close();
    await api.close();
  }
}

/** Of a process that is a gateway and a worker. */
async function fleetMetrics({ builtinModels, createServer, workerModel, settings }) {
  const nats = await startNats();
  const own = { ...settings, natsUrl: nats.url, warmupBatches: 1 };
  const server = await createServer({ models: [workerModel(builtinModels.mlp(), own)], settings: own });
  try {
    const url = await server.listen();
    await server.ready();
    // The queue's figures are counted once a second.
    let text = "";
    while (!text.includes("sheaf_fleet_pending_items{")) text = await (await fetch(`${url}/metrics`)).text();
    return text;
  } finally {
    await server.close();
    await nats.stop();
  }
}

test(
  "every metric that the dashboard and the alerts name is on a real /metrics, with the labels they name",
  { skip: noNats },
  () => {
    assert.ok(expressions.length > 30, `${expressions.length} expressions`);
    const ofPrometheus = new Set(["up"]);
    const fromScrape = new Set(["instance", "job"]);
    for (const { where, expr } of expressions) {
      const names = [...expr.matchAll(/\b(?:(?:sheaf|process)_[a-z0-9_]+|up\b)/g)].map(([name]) => name);
      assert.ok(names.length > 0, `${where} names no metric: ${expr}`);
      const known = new Set(fromScrape);
      for (const name of names) {
        assert.ok(labelsOf.has(name) || ofPrometheus.has(name), `${where}: /metrics has no ${name}`);
        for (const label of labelsOf.get(name) ?? []) known.add(label);
      }
      const matched = [...expr.matchAll(/[{,]\s*(\w+)\s*(?:=~?|!=|!~)"/g)].map(([, label]) => label);
      const grouped = [...expr.matchAll(/\b(?:by|on|without|ignoring) \(([^)]*)\)/g)].flatMap(([, list]) =>
        list.split(/, */),
      );
      for (const label of [...matched, ...grouped])
        assert.ok(known.has(label), `${where}: no metric in it has ${label}`);
    }
  },
);

test("every batcher metric of docs/reference/metrics.md stands on the dashboard, but the cost a server has not", () => {
  const reference = readFileSync(`${root}/docs/reference/metrics.md`, "utf8");
  const documented = [...reference.matchAll(/^\| `(sheaf_[a-z_0-9]+)`/gm)].map(([, name]) => name);
  const shown = expressions.map(({ expr }) => expr).join("\n");
  // A fleet's are the queue's. Those of background batches, several processes and an upstream's limits, which most servers have not, are
  // on the page. What ends in _info never changes, and is there to be joined with others.
  const elsewhere = /^sheaf_(fleet|background|process|upstream)_|_info$/;
  const missing = documented.filter((name) => !shown.includes(name) && !elsewhere.test(name));
  assert.deepEqual(missing, ["sheaf_cost_total"]);
});

test("panels do not overlap, and each says what it shows", () => {
  const cells = new Set();
  for (const { title, description } of panels) assert.ok(description.length > 10, title);
  for (const { title, gridPos } of dashboard.panels) {
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.ok(x < 24 && !cells.has(`${x},${y}`), `${title} at ${x},${y}`);
        cells.add(`${x},${y}`);
      }
  }
});

test("a plain server has data for every panel that is open, and for none in the closed rows", () => {
  const names = ({ targets }) => targets.flatMap(({ expr }) => expr.match(/\b(?:sheaf|process)_[a-z0-9_]+/g));
  const hasData = (panel) => names(panel).some((name) => plain.includes(`\n${name}{`) || plain.includes(`\n${name} `));
  const titles = (some) => some.map(({ title }) => title);
  assert.deepEqual(titles(openPanels.filter((panel) => !hasData(panel))), []);
  assert.ok(rows.every(({ collapsed }) => collapsed));
  assert.deepEqual(titles(rows.flatMap((row) => row.panels).filter(hasData)), []);
});

const folder = mkdtempSync(join(tmpdir(), "sheaf-rules-"));
after(() => rmSync(folder, { recursive: true }));

const filledIn = (expr) => expr.replaceAll("$__rate_interval", "1m").replaceAll("$batcher", ".*");

const promtool = (...words) => {
  const { status, stdout, stderr } = spawnSync("promtool", words, { encoding: "utf8" });
  assert.equal(status, 0, `${stdout}${stderr}`);
};

test("both autoscalers go by the same gauge", () => {
  const { name, selector } = scaler("HorizontalPodAutoscaler").spec.metrics[0].external.metric;
  assert.ok(keda.includes(`${name}{batcher="${selector.matchLabels.batcher}"}`), keda);
});

test("promtool takes the rules, the scrape configuration, and every expression of the dashboard", { skip }, () => {
  promtool("check", "rules", `${root}/deploy/prometheus/sheaf.rules.yml`);
  promtool("check", "config", `${root}/deploy/prometheus/prometheus.yml`);
  const shown = expressions.filter(({ where }) => where.startsWith("panel") || where === "autoscaler");
  const asRules = shown.map(({ expr }, index) => ({ record: `panel:${index}`, expr: filledIn(expr) }));
  const file = join(folder, "panels.yml");
  writeFileSync(file, JSON.stringify({ groups: [{ name: "panels", rules: asRules }] }));
  promtool("check", "rules", file);
});

test("the share that was not answered counts what a tenant's bound refuses", { skip }, () => {
  const { expr } = expressions.find(({ where }) => where === "panel Not answered");
  const file = join(folder, "not-answered.yml");
  const share = (series, value) => ({
    interval: "10s",
    input_series: series.map(([name, values]) => ({ series: name, values })),
    promql_expr_test: [{ expr: filledIn(expr), eval_time: "5m", exp_samples: [{ labels: "{}", value }] }],
  });
  const answered = ['sheaf_items_total{batcher="m", outcome="ok"}', "0+100x60"];
  const none = ['sheaf_items_total{batcher="m", outcome="rejected"}', "0+0x60"];
  const some = ['sheaf_items_total{batcher="m", outcome="error"}', "0+25x60"];
  const ofTenants = ['sheaf_tenant_items_total{tenant="a", outcome="ok"}', "0+100x60"];
  const refused = ['sheaf_tenant_items_total{tenant="b", outcome="rejected"}', "0+300x60"];
  const idle = ['sheaf_tenant_items_total{tenant="a", outcome="ok"}', "0x60"];
  const tests = [
    share([answered, none], 0),
    share([answered, some], 0.2),
    share([answered, none, ofTenants, refused], 0.75),
    // Who calls in the process is no tenant.
    share([answered, some, idle], 0.2),
  ];
  writeFileSync(file, JSON.stringify({ tests }));
  promtool("test", "rules", file);
});

test("every alert fires on a broken server, and none on one that works", { skip }, () => {
  promtool("test", "rules", `${root}/deploy/prometheus/sheaf.rules.test.yml`);
});
