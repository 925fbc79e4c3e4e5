import type { FastifyInstance } from "fastify";
import { prometheusMetrics, type PrometheusMetrics } from "sheaf/metrics";
import { exposition, expositionContentType, type MeasuredBatcher, type MetricFamily } from "sheaf/internal/metrics";
import { ofProcesses, sumOf, type ProcessFigures } from "../observe/process-figures.ts";
import { ProcessMetrics } from "../observe/process-metrics.ts";
import { RequestMetrics } from "../observe/request-metrics.ts";
import type { RouteSchema } from "./schema/route-schema.ts";
import { Type } from "./schema/json-schema.ts";

export const metricsPath = "/metrics";

const metricsSchema: RouteSchema = {
  summary: "Prometheus metrics",
  tags: ["observation"],
  operationId: "metrics",
  response: {
    200: { description: "Text format 0.0.4.", content: { "text/plain": { schema: Type.String() } } },
  },
};

/** The counts of requests, and the processes, beside this one's. */
interface OtherProcesses {
  readonly requests: readonly MetricFamily[];
  readonly processes: readonly ProcessFigures[];
}

/**
 * `GET /metrics` in Prometheus' text format: metrics of the batchers (which may come and go), `more`, the `requests` and the process.
 */
export function metricsRoute(
  app: FastifyInstance,
  measured: { watch(watcher: (batcher: MeasuredBatcher) => () => void): void },
  more: () => MetricFamily[],
  requests: RequestMetrics = new RequestMetrics(),
  others?: () => Promise<OtherProcesses>,
): void {
  const batchers = new Set<PrometheusMetrics>();
  measured.watch((one) => {
    const batcher = prometheusMetrics([one]);
    batchers.add(batcher);
    return () => {
      batchers.delete(batcher);
      batcher.close();
    };
  });
  const processMetrics = new ProcessMetrics();
  requests.count(app);
  app.addHook("onClose", (_app, done) => {
    for (const batcher of batchers) batcher.close();
    processMetrics.close();
    done();
  });
  app.get(metricsPath, { schema: metricsSchema, logLevel: "warn" }, async (_request, reply) => {
    const { requests: counts, processes } = (await others?.()) ?? { requests: undefined, processes: [] };
    const families = [
      ...together(batchers),
      ...more(),
      ...(counts === undefined ? requests.families() : sumOf([counts, requests.families()])),
      ...ofProcesses([{ name: "hub", families: processMetrics.families() }, ...processes]),
    ];
    return reply.type(expositionContentType).send(exposition(families));
  });
}

/** Merges the batchers' families; all batchers have the same ones in the same order. */
function together(batchers: Iterable<PrometheusMetrics>): MetricFamily[] {
  const [first = prometheusMetrics([]), ...others] = batchers;
  const rest = others.map((batcher) => batcher.families());
  return first.families().map((family, index) => ({
    ...family,
    samples: [...family.samples, ...rest.flatMap((families) => families[index]!.samples)],
  }));
}
