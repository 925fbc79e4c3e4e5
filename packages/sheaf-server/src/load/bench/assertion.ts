import type { LatencyMs, LoadResult } from "../result.ts";

export interface Assertion {
  readonly text: string;
  /** Only results of this configuration; all without it. */
  readonly configuration: string | undefined;
  readonly holds: (result: LoadResult) => boolean;
  readonly actual: (result: LoadResult) => string;
}

interface Metric {
  readonly unit: "time" | "rate" | "share";
  readonly of: (result: LoadResult) => number;
}

const latency = (key: keyof LatencyMs): Metric => ({ unit: "time", of: ({ latencyMs }) => latencyMs[key] });

const metrics: Readonly<Record<string, Metric>> = {
  mean: latency("mean"),
  p50: latency("p50"),
  p75: latency("p75"),
  p90: latency("p90"),
  p95: latency("p95"),
  p99: latency("p99"),
  "p99.9": latency("p999"),
  max: latency("max"),
  lag: { unit: "time", of: ({ sendLagMs }) => sendLagMs.p99 },
  throughput: { unit: "rate", of: ({ achievedPerS }) => achievedPerS },
  // Without clients that try again there is no answer, and no condition holds.
  recovery: { unit: "time", of: ({ goodput }) => goodput?.recoveryMs ?? Number.NaN },
  success: { unit: "share", of: ({ successRate }) => successRate },
};

const factors: Readonly<Record<Metric["unit"], Readonly<Record<string, number>>>> = {
  time: { us: 0.001, ms: 1, s: 1000 },
  rate: { "/s": 1 },
  share: { "%": 0.01 },
};

const comparisons: Readonly<Record<string, (actual: number, limit: number) => boolean>> = {
  "<": (actual, limit) => actual < limit,
  "<=": (actual, limit) => actual <= limit,
  ">": (actual, limit) => actual > limit,
  ">=": (actual, limit) => actual >= limit,
};

/**
 * `p99<50ms`, `throughput>=900/s`, `success>=99.9%`; with `auto:` in front it counts for that configuration only.
 * @throws {RangeError} with an example of an assertion.
 */
export function parseAssertion(text: string): Assertion {
  const match = /^(?:([\w.-]+):)?\s*([\w.]+)\s*(<=|>=|<|>)\s*(\d+(?:\.\d+)?)\s*(us|ms|s|%|\/s)?$/.exec(text.trim());
  const [, configuration, name = "", operator = "", limitText = "", unit = ""] = match ?? [];
  const metric = Object.hasOwn(metrics, name) ? metrics[name] : undefined;
  const factor = metric === undefined ? undefined : factors[metric.unit][unit];
  if (metric === undefined || factor === undefined) {
    const expected = metric === undefined ? "" : ` ${name} takes ${Object.keys(factors[metric.unit]).join(", ")}.`;
    throw new RangeError(
      `an assertion reads METRIC<VALUE with its unit, such as p99<50ms, throughput>=900/s or success>=99.9% ` +
        `(metrics: ${Object.keys(metrics).join(", ")}), got ${JSON.stringify(text)}.${expected}`,
    );
  }
  const limit = Number(limitText) * factor;
  return {
    text,
    configuration,
    holds: (result) => comparisons[operator]!(metric.of(result), limit),
    actual: (result) => `${Number((metric.of(result) / factor).toPrecision(4))}${unit}`,
  };
}

export interface CheckedAssertion {
  readonly assertion: string;
  readonly configuration: string;
  readonly pattern: string;
  readonly holds: boolean;
  readonly actual: string;
}

export function checkAssertions(assertions: readonly Assertion[], results: readonly LoadResult[]): CheckedAssertion[] {
  return assertions.flatMap(({ text, configuration, holds, actual }) =>
    results
      .filter((result) => configuration === undefined || result.configuration === configuration)
      .map((result) => ({
        assertion: text,
        configuration: result.configuration,
        pattern: result.pattern,
        holds: holds(result),
        actual: actual(result),
      })),
  );
}
