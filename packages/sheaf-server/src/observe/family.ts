import type { MetricFamily, MetricSample } from "sheaf/internal/metrics";

export const counter = (name: string, help: string, samples: readonly MetricSample[]): MetricFamily => ({
  name,
  help,
  type: "counter",
  samples,
});

export const gauge = (name: string, help: string, samples: readonly MetricSample[]): MetricFamily => ({
  name,
  help,
  type: "gauge",
  samples,
});
