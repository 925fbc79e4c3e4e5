import type { LoadResult } from "../../dist/load/result.js";

interface About {
  readonly p50: number;
  readonly p99: number;
  readonly successRate?: number;
  readonly saturated?: string;
  /** Standard deviation of the logarithm of each tenth's quantiles. */
  readonly scatter?: number;
  readonly parts?: number;
  readonly seed?: number;
}

/** A result as a run would give it, whose tenths scatter around the figures given. */
export function configured(configuration: string, about: About): LoadResult {
  const { p50, p99, successRate = 1, saturated, scatter = 0.02, parts = 10, seed = 1 } = about;
  const normal = normals(seed);
  // The whole is about the geometric mean of its parts; without one it is that of the others.
  const tenths = Array.from({ length: parts }, () => scatter * normal());
  const mean = parts === 0 ? 0 : tenths.reduce((sum, value) => sum + value, 0) / parts;
  const restWithout = (part: number): number => (mean * parts - tenths[part]!) / (parts - 1);
  const isScattered = about.seed !== undefined;
  const shift = isScattered ? Math.exp(mean) : 1;
  const latencyMs = {
    mean: p50,
    p50: p50 * shift,
    p75: p50,
    p90: p99,
    p95: p99,
    p99: p99 * shift,
    p999: p99,
    max: p99,
  };
  return {
    configuration,
    pattern: "steady",
    seed,
    warmUpMs: 0,
    durationMs: 10_000,
    timeoutMs: 1000,
    offeredPerS: 100,
    achievedPerS: 100 * successRate,
    requests: 1000,
    ok: 1000 * successRate,
    successRate,
    latencyMs,
    sendLagMs: { p50: 0.1, p99: 1, max: 2 },
    waitedForConnection: 0,
    statuses: { "200": 1000 * successRate },
    saturated,
    without: tenths.map((_, part) => {
      const factor = Math.exp(restWithout(part) - (isScattered ? 0 : mean));
      return { p50: p50 * factor, p99: p99 * factor };
    }),
    series: Array.from({ length: 8 }, (_, i) => ({ atMs: 1250 * (i + 0.5), offeredPerS: 100, achievedPerS: 100, successRate, latencyMs })), // prettier-ignore
    phases: [{ label: "steady", offeredPerS: 100, achievedPerS: 100, successRate, latencyMs }],
  };
}

/** Normally distributed numbers, the same for the same seed. */
function normals(seed: number): () => number {
  let state = (seed * 2_654_435_761 + 1) >>> 0;
  const uniform = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state + 0.5) / 2 ** 32;
  };
  for (let i = 0; i < 10; i++) uniform();
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}
