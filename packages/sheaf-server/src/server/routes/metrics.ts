import type { FastifyInstance } from "fastify";
import { exposition, expositionContentType, prometheusMetrics, type MeasuredBatcher } from "sheaf/metrics";
import type { ServedModel } from "../model.ts";
import type { Models } from "../models.ts";
import { ProcessMetrics } from "../process-metrics.ts";
import { RequestMetrics } from "../request-metrics.ts";
import { metricsSchema } from "../schemas.ts";
import { workerFamilies } from "../worker-metrics.ts";

const measured = (model: ServedModel): MeasuredBatcher => ({
  name: model.name,
  stats: () => model.stats(),
  subscribe: (listener) => model.batcher.subscribe(listener),
});

/** `GET /metrics`: the batchers', the requests' and the process's metrics in Prometheus' text format. */
export function metricsRoute(app: FastifyInstance, models: Models): void {
  const batchers = prometheusMetrics(models.all.map((model) => measured(model)));
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
      .send(
        exposition([
          ...batchers.families(),
          ...workerFamilies(models),
          ...requests.families(),
          ...processMetrics.families(),
        ]),
      ),
  );
}
