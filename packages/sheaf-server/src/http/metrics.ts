import type { FastifyInstance } from "fastify";
import { prometheusMetrics, type PrometheusMetrics } from "sheaf/metrics";
import { exposition, expositionContentType, type MeasuredBatcher, type MetricFamily } from "sheaf/internal/metrics";
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

/**
 * `GET /metrics` in Prometheus' text format: metrics of the batchers (which may come and go), `more`, the `requests` and the process.
 */
export function metricsRoute(
  app: FastifyInstance,
  measured: { watch(watcher: (batcher: MeasuredBatcher) => () => void): void },
  more: () => MetricFamily[],
  requests: RequestMetrics = new RequestMetrics(),
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
  app.get(metricsPath, { schema: metricsSchema, logLevel: "warn" }, (_request, reply) =>
    reply
      .type(expositionContentType)
      .send(exposition([...together(batchers), ...more(), ...requests.families(), ...processMetrics.families()])),
  );
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
