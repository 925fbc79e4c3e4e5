export { openTelemetry } from "./opentelemetry.ts";
export type { OpenTelemetryOptions, SpanLike, TraceLike, TracerLike } from "./opentelemetry.ts";
export { prometheusMetrics } from "./prometheus.ts";
export type { MeasuredBatcher, PrometheusMetrics, RegistryLike } from "./prometheus.ts";
export { Histogram } from "../core/observe/histogram.ts";
export { Buckets, secondsBuckets, sizeBuckets } from "./buckets.ts";
export { exposition, expositionContentType } from "./exposition.ts";
export type { MetricFamily, MetricSample } from "./exposition.ts";
