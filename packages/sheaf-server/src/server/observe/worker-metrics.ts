import type { MetricFamily } from "sheaf/internal/metrics";
import type { Models } from "../models/models.ts";
import { counter, gauge } from "../../observe/family.ts";

/** For every model: whether its last load failed, and its device. For models with workers: their states and restarts. */
export function workerFamilies(models: Models): MetricFamily[] {
  const withWorkers = models.all.flatMap(({ name, workers, foundInputs }) =>
    workers === undefined ? [] : [{ name, workers, foundInputs }],
  );
  return [
    counter(
      "sheaf_worker_restarts_total",
      "Workers started again after a crash or a hang.",
      withWorkers.map(({ name, workers }) => ({ labels: { batcher: name }, value: workers.restarts })),
    ),
    counter(
      "sheaf_crashing_inputs_total",
      "Inputs that crashed a worker, and inputs refused because they had.",
      withWorkers.flatMap(({ name, foundInputs: { lost, refused } = { lost: 0, refused: 0 } }) => [
        { labels: { batcher: name, outcome: "crashed" }, value: lost },
        { labels: { batcher: name, outcome: "refused" }, value: refused },
      ]),
    ),
    gauge(
      "sheaf_workers",
      "Workers by state.",
      withWorkers.flatMap(({ name, workers }) => {
        const counts = new Map<string, number>();
        for (const { state, role } of workers.instances()) {
          const word = role === "hung" ? role : state;
          counts.set(word, (counts.get(word) ?? 0) + 1);
        }
        return [...counts].map(([state, value]) => ({ labels: { batcher: name, state }, value }));
      }),
    ),
    gauge(
      "sheaf_model_load_failed",
      "1 if the last load of a model failed, otherwise 0.",
      models.deployments.map(({ name, hasFailedLoad }) => ({
        labels: { batcher: name },
        value: Number(hasFailedLoad),
      })),
    ),
    gauge(
      "sheaf_model_info",
      "The device a model runs on; always 1.",
      models.all.flatMap(({ name, definition: { device } }) =>
        device === undefined ? [] : [{ labels: { batcher: name, device }, value: 1 }],
      ),
    ),
  ];
}
