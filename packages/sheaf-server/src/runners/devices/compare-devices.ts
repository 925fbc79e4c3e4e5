import type { Executor } from "sheaf";
import { runHandle } from "sheaf/executors";
import { compareResults, largestSteadyRate } from "sheaf/internal/models";
import type { ModuleSpec, RunnerSettings } from "../contract/model-spec.ts";
import { closedOn } from "../workers/inspection.ts";
import { comparable } from "../tensors/comparable.ts";
import { trialItems } from "../self-test/sample-items.ts";
import { workersOn } from "../workers/workers-on.ts";

/** Timed runs on each device, in turn; their median counts. */
const rounds = 5;

/**
 * Runs a model on a device and on the CPU, in batches of its largest size (32 at most).
 * @returns the gain of the device, in words.
 * @throws {Error} why the device is not taken: other results than the CPU's, or no faster.
 */
export async function compareDevices(
  spec: ModuleSpec,
  cpu: ModuleSpec,
  { device, maxBatchSize = 32, signal }: Pick<RunnerSettings, "maxBatchSize" | "signal"> & { readonly device: string },
): Promise<string> {
  const size = Math.min(32, maxBatchSize, spec.maxBatchSize ?? Infinity);
  const items = trialItems(spec, size);
  if (items === undefined) throw new Error("nothing is known that the model takes, so the devices cannot be compared");
  const open = ({ workerUrl, data, name }: ModuleSpec, on: string): Executor<never, unknown> =>
    workersOn(on)<never, unknown>(workerUrl, { data, name: `${name} on ${on}` });
  const executors = [open(spec, device), open(cpu, "cpu")] as const;
  const ends = executors.map((executor) => closedOn(signal, executor));
  try {
    await Promise.all(executors.map((executor) => executor.ready()));
    const times: [number[], number[]] = [[], []];
    const [onDevice, onCpu] = [await run(executors[0], items), await run(executors[1], items)];
    for (let round = 0; round < rounds; round++) {
      for (const i of [0, 1] as const) times[i].push((await run(executors[i], items)).runMs);
    }
    const tensors = spec.output.kind === "tensors" ? spec.output.tensors : [];
    const [results, expected] = [onDevice, onCpu].map((runs) => comparable(runs.results, tensors));
    const pairs = results!.map((result, i) => [result, expected![i]] as const);
    const differenceRate = Math.max(0, ...compareResults(pairs).values());
    return gainOf({ size, differenceRate, deviceMs: medianOf(times[0]), cpuMs: medianOf(times[1]) });
  } finally {
    for (const end of ends) end();
    await Promise.all(executors.map((executor) => executor.close()));
  }
}

export interface DeviceComparison {
  readonly size: number;
  /** The largest difference between results, as a share of the largest value; Infinity where a whole number changed. */
  readonly differenceRate: number;
  readonly deviceMs: number;
  readonly cpuMs: number;
}

/** @throws {Error} why the device is not taken. */
export function gainOf({ size, differenceRate, deviceMs, cpuMs }: DeviceComparison): string {
  if (differenceRate > largestSteadyRate) {
    const by = differenceRate === Infinity ? "whole numbers, texts or lengths change" : `by ${rate(differenceRate)}`;
    throw new Error(`its results are not the CPU's (${by})`);
  }
  const times = `${size} ${size === 1 ? "item" : "items"} in ${ms(deviceMs)}, on the CPU in ${ms(cpuMs)}`;
  if (deviceMs >= cpuMs) throw new Error(`it is no faster: ${times}`);
  return times;
}

async function run(
  executor: Executor<never, unknown>,
  items: readonly unknown[],
): Promise<{ readonly results: readonly unknown[]; readonly runMs: number }> {
  const handle = runHandle({ size: items.length });
  const startedAtMs = performance.now();
  const results = Array.from(await executor.run([...items] as never[], handle));
  return { results, runMs: handle.runMs ?? performance.now() - startedAtMs };
}

const medianOf = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;
const rate = (value: number): string => `${Number((value * 100).toPrecision(2))} %`;
const ms = (value: number): string => `${Number(value.toPrecision(2))} ms`;
