export { Histogram } from "../core/measure/histogram.ts";
export { Buckets, secondsBuckets, sizeBuckets } from "../metrics/buckets.ts";
export { exposition, expositionContentType, type MetricFamily, type MetricSample } from "../metrics/exposition.ts";
export type { SpanLike, TraceLike } from "../metrics/opentelemetry.ts";
export type { MeasuredBatcher } from "../metrics/prometheus.ts";
