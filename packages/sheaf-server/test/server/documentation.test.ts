import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { statusOfCode } from "../../dist/problems/problem.js";
import { service } from "../../dist/server/protocols/grpc/definition.js";
import { statusNameOf } from "../../dist/server/protocols/grpc/status.js";
import { answering, servingFolder } from "./models/folder-server.js";
import { temporaryFolder } from "../folder.js";
import { alone, doubling, serving } from "./serving.js";

const page = (name: string): string =>
  readFileSync(new URL(`../../../../docs/reference/${name}.md`, import.meta.url), "utf8");
/** The first cells of a page's tables that match. */
const firstCells = (markdown: string, pattern: RegExp): string[] =>
  [...markdown.matchAll(/^\| `([^`]+)` *\|/gm)].map(([, cell]) => cell!).filter((cell) => pattern.test(cell));

test("every route stands in docs/reference/routes.md, and back", async (t) => {
  // With a folder of models, one of batches, and a key: then there are all of them.
  const server = await servingFolder(t, { "a.mjs": answering("a") }, { batchesDir: temporaryFolder(t) });
  const { json } = await server.get("/openapi.json");
  const routes = Object.entries(json.paths as Record<string, object>).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const documented = firstCells(page("routes"), /^(GET|POST|DELETE) /);
  assert.deepEqual(
    documented.sort(),
    [...routes, "GET /", "GET /dashboard/events", "GET /docs", "GET /openapi.json"].sort(),
  );
});

test("every error code and its status stand in docs/reference/routes.md, and back", () => {
  const rows = [...page("routes").matchAll(/^\| `([A-Z_]+)` *\| (\d{3}) /gm)];
  assert.deepEqual(Object.fromEntries(rows.map(([, code, status]) => [code, Number(status)])), statusOfCode);
});

test("the status over gRPC of every error, and every method, stand in docs/reference/grpc.md, and back", () => {
  const rows = [...page("grpc").matchAll(/^\| (\d{3}) +\| `([A-Z_]+)` +\|$/gm)];
  const statuses = [...new Set(Object.values(statusOfCode))].sort((a, b) => a - b);
  assert.deepEqual(
    rows.map(([, status, name]) => [Number(status), name]),
    statuses.map((status) => [status, statusNameOf({ status })]),
  );
  assert.deepEqual(firstCells(page("grpc"), /^[A-Z][A-Za-z]+$/).sort(), Object.keys(service).sort());
});

test(
  "every metric stands in docs/reference/metrics.md with its type; those that always show, and no other, show",
  { skip: alone },
  async (t) => {
    const server = await serving(t, [doubling()]);
    await server.post("/infer", [1, 2, 3]);
    await server.get("/livez");
    const { text } = await server.get("/metrics");
    const shown = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name!, type!]));
    const documented = new Map(
      [...page("metrics").matchAll(/^\| `([a-z_0-9]+)` *\| (\w+) /gm)].map(([, name, type]) => [name!, type!]),
    );
    for (const [name, type] of shown) assert.equal(documented.get(name), type, name);
    // These need what this model has not: a device, a cache, a fleet, several processes, workers, tenants, both lanes in use, a verdict, a cost, a rate limit, deadlines.
    const sometimes = [...documented.keys()].filter((name) => !shown.has(name));
    const ofFleet = sometimes.filter((name) => name.startsWith("sheaf_fleet_"));
    assert.equal(ofFleet.length, 15, "test/e2e/fleet.test.ts holds them to what a fleet shows");
    assert.deepEqual(sometimes.filter((name) => !ofFleet.includes(name)).sort(), [
      "sheaf_background_batches",
      "sheaf_background_folder_bytes",
      "sheaf_background_folder_max_bytes",
      "sheaf_background_idle_seconds",
      "sheaf_background_lines_total",
      "sheaf_bulk_oldest_seconds",
      "sheaf_cache_bytes",
      "sheaf_cache_evictions_total",
      "sheaf_cache_hits_total",
      "sheaf_cache_items",
      "sheaf_cache_misses_total",
      "sheaf_cache_saved_runs_total",
      "sheaf_cost_total",
      "sheaf_crashing_inputs_total",
      "sheaf_lane_items_total",
      "sheaf_lane_latency_seconds",
      "sheaf_lane_queue_items",
      "sheaf_model_info",
      "sheaf_process_cpu_seconds_total",
      "sheaf_process_event_loop_delay_p99_seconds",
      "sheaf_process_resident_memory_bytes",
      "sheaf_rate_limit_left",
      "sheaf_rate_limit_pause_seconds_total",
      "sheaf_rate_limit_per_minute",
      "sheaf_rate_limit_refusals_total",
      "sheaf_rate_limit_share_ratio",
      "sheaf_rate_limit_used_total",
      "sheaf_scheduler_fixed_seconds",
      "sheaf_scheduler_item_seconds",
      "sheaf_slots_needed",
      "sheaf_slots_needed_high",
      "sheaf_slots_needed_low",
      "sheaf_speedup_high_ratio",
      "sheaf_speedup_low_ratio",
      "sheaf_speedup_ratio",
      "sheaf_tenant_in_flight_items",
      "sheaf_tenant_items_total",
      "sheaf_upstream_limit_left",
      "sheaf_upstream_limit_per_minute",
      "sheaf_upstream_limit_used_total",
      "sheaf_upstream_refusals_total",
      "sheaf_upstream_waiting_items",
      "sheaf_worker_restarts_total",
      "sheaf_workers",
    ]);
  },
);
