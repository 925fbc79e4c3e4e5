import type { FastifyInstance } from "fastify";
import type { MetricFamily } from "sheaf/internal/metrics";
import type { BackgroundBatch } from "../../dashboard/observed.ts";
import { counter, gauge } from "../../observe/family.ts";
import type { Callers } from "../../tenants/callers.ts";
import type { Models } from "../models/models.ts";
import { Batches, type BatchFigures } from "./batches.ts";
import type { Parts } from "./feeder.ts";
import { jsonEndpoints } from "./endpoints.ts";
import { batchRoutes, noBatchRoutes } from "./routes.ts";
import { Store } from "./store.ts";
import { LinesThread } from "./thread.ts";

/** Files and batches of a server; without BATCHES_DIR only routes that say so. */
export interface BackgroundWork {
  families(): MetricFamily[];
  /** The page's rows; undefined where there is nothing to show. */
  figures(): readonly BackgroundBatch[] | undefined;
}

const nothing: BackgroundWork = { families: () => [], figures: () => undefined };

/** Opens the folder and adds the routes. Call it before adding the routes that batches may use. */
export async function backgroundWork(
  app: FastifyInstance,
  models: Models,
  callers: Callers,
  operatorPaths: ReadonlySet<string>,
): Promise<BackgroundWork> {
  const { batchesDir, batchesMaxBytes, maxBodyBytes } = models.settings;
  if (batchesDir === undefined) {
    noBatchRoutes(app);
    return nothing;
  }
  const match = jsonEndpoints(app, operatorPaths);
  const now = (): number => performance.now();
  const store = await Store.open({
    folder: batchesDir,
    maxBytes: batchesMaxBytes,
    hasTenants: callers.figures !== undefined,
    now,
  });
  const thread = new LinesThread();
  const lines = { ok: 0, error: 0 };
  const parts = {
    app,
    models,
    callers,
    store,
    thread,
    maxLineBytes: maxBodyBytes,
    ahead: new Map<string, number>(),
    lines,
  };
  const batches = new Batches(parts, match);
  app.addHook("onReady", async () => void batches.tick());
  app.addHook("onClose", () => batches.close());
  batchRoutes(app, { models, store, batches, match });
  return { families: () => familiesOf(store, batches, lines), figures: () => batches.figures().map(rowOf) };
}

const rowOf = ({ batch, linesPerSecond }: BatchFigures): BackgroundBatch => ({
  id: batch.id,
  model: batch.model ?? "",
  status: batch.status,
  total: batch.total,
  done: batch.written.completed + batch.written.failed,
  failed: batch.written.failed,
  linesPerSecond,
  cancelPath: `v1/batches/${batch.id}/cancel`,
  paused: batch.paused ?? undefined,
});

function familiesOf(store: Store, batches: Batches, lines: Parts["lines"]): MetricFamily[] {
  const open = batches.figures();
  return [
    gauge("sheaf_background_batches", "Batches that have not ended.", [{ labels: {}, value: open.length }]),
    gauge("sheaf_background_idle_seconds", "Longest time that a running batch has gone without a result.", [
      { labels: {}, value: Math.max(0, ...open.map(({ idleMs }) => idleMs / 1000)) },
    ]),
    counter("sheaf_background_lines_total", "Lines of batches by outcome.", [
      { labels: { outcome: "ok" }, value: lines.ok },
      { labels: { outcome: "error" }, value: lines.error },
    ]),
    gauge("sheaf_background_folder_bytes", "Bytes of files, results and uploads in BATCHES_DIR.", [
      { labels: {}, value: store.bytes() },
    ]),
    gauge("sheaf_background_folder_max_bytes", "BATCHES_MAX_BYTES.", [{ labels: {}, value: store.maxBytes }]),
  ];
}
