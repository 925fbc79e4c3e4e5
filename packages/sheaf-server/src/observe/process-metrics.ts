import { monitorEventLoopDelay, type IntervalHistogram } from "node:perf_hooks";
import type { MetricFamily, MetricSample } from "sheaf/internal/metrics";
import { counter, gauge } from "./family.ts";

const nsPerS = 1e9;
/** The probe wakes this often, on an idle server too; the delay is the time beyond that. */
const resolutionMs = 25;

/** Memory, CPU and event loop delay of this process, read at scrape time. */
export class ProcessMetrics {
  readonly #delay: IntervalHistogram = monitorEventLoopDelay({ resolution: resolutionMs });

  constructor() {
    this.#delay.enable();
  }

  close(): void {
    this.#delay.disable();
  }

  /** The event loop's delay is that since the last scrape. */
  families(): MetricFamily[] {
    const { user, system } = process.cpuUsage();
    const wakeUpS = this.#delay.count > 0 ? this.#delay.percentile(99) / nsPerS : 0;
    const delayS = Math.max(0, wakeUpS - resolutionMs / 1000);
    this.#delay.reset();
    return [
      counter(
        "process_cpu_seconds_total",
        "CPU time of the process, its worker threads included.",
        one((user + system) / 1e6),
      ),
      gauge("process_resident_memory_bytes", "Resident memory of the process.", one(process.memoryUsage.rss())),
      gauge(
        "process_start_time_seconds",
        "Start of the process, in seconds since 1970.",
        one(Date.now() / 1000 - process.uptime()),
      ),
      gauge(
        "sheaf_event_loop_delay_p99_seconds",
        "99th percentile of the event loop's delay since the last scrape.",
        one(delayS),
      ),
    ];
  }
}

const one = (value: number): MetricSample[] => [{ labels: {}, value }];
