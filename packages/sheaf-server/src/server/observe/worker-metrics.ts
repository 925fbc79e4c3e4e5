import type { MetricFamily } from "sheaf/metrics";
import type { Models } from "../models/models.ts";

/** Workers by state, how often one was started again, and the device, of every model that has workers. */
export function workerFamilies(models: Models): MetricFamily[] {
  const withWorkers = models.all.flatMap(({ name, workers }) => (workers === undefined ? [] : [{ name, workers }]));
  return [
    {
      name: "sheaf_worker_restarts_total",
      help: "Workers started again after a crash or a hang.",
      type: "counter",
      samples: withWorkers.map(({ name, workers }) => ({ labels: { batcher: name }, value: workers.restarts })),
    },
    {
      name: "sheaf_workers",
      help: "Workers by state.",
      type: "gauge",
      samples: withWorkers.flatMap(({ name, workers }) => {
        const counts = new Map<string, number>();
        for (const { state } of workers.instances()) counts.set(state, (counts.get(state) ?? 0) + 1);
        return [...counts].map(([state, value]) => ({ labels: { batcher: name, state }, value }));
      }),
    },
    {
      name: "sheaf_model_info",
      help: "The device a model runs on; always 1.",
      type: "gauge",
      samples: models.all.flatMap(({ name, definition: { device } }) =>
        device === undefined ? [] : [{ labels: { batcher: name, device }, value: 1 }],
      ),
    },
  ];
}
