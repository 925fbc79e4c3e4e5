export { openTelemetry, type OpenTelemetryOptions } from "./opentelemetry.ts";
export { prometheusMetrics, type PrometheusMetrics } from "./prometheus.ts";
