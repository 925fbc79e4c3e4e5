import type { FastifyInstance } from "fastify";
import {
  exposition,
  expositionContentType,
  prometheusMetrics,
  type MeasuredBatcher,
  type MetricFamily,
} from "sheaf/metrics";
import type { ServedModel } from "../models/served-model.ts";
import { ProcessMetrics } from "./process-metrics.ts";
import { RequestMetrics } from "./request-metrics.ts";
import { metricsSchema } from "../protocols/schemas.ts";

/** A model's batcher, with the items that were refused before it. */
export const measured = (model: ServedModel): MeasuredBatcher => ({
  name: model.name,
  stats: () => model.stats(),
  subscribe: (listener) => model.subscribe(listener),
});

/** `GET /metrics`: the batchers' metrics, `more`, and the requests' and the process's, in Prometheus' text format. */
export function metricsRoute(
  app: FastifyInstance,
  measuredBatchers: readonly MeasuredBatcher[],
  more: () => MetricFamily[],
): void {
  const batchers = prometheusMetrics(measuredBatchers);
  const requests = new RequestMetrics();
  const processMetrics = new ProcessMetrics();
  app.addHook("onResponse", (request, reply, done) => {
    // A stream ends when its viewer goes: its length says nothing about requests.
    if (reply.getHeader("content-type") === "text/event-stream") return done();
    requests.record(request.routeOptions.url ?? "none", reply.statusCode, reply.elapsedTime);
    done();
  });
  app.addHook("onClose", (_app, done) => {
    batchers.close();
    processMetrics.close();
    done();
  });
  app.get("/metrics", { schema: metricsSchema, logLevel: "warn" }, (_request, reply) =>
    reply
      .type(expositionContentType)
      .send(exposition([...batchers.families(), ...more(), ...requests.families(), ...processMetrics.families()])),
  );
}
