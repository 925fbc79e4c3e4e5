import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { BatchFunction, Executor } from "sheaf";
import { workerThread } from "sheaf/node";
import { builtinModels } from "../runners/builtin.ts";
import type { ModelInput } from "../runners/model-spec.ts";
import { UsageError, usage } from "./command-line.ts";
import { itemsFromTemplate, wordsItem } from "./payload.ts";
import { seededRandom } from "./random.ts";
import { urlBatches } from "./url-batches.ts";

/** What `sheaf tune` measures. */
export interface TuneTarget {
  readonly run: BatchFunction<unknown, unknown> | Executor<unknown, unknown>;
  readonly sample: (index: number) => unknown;
  /** Batches it can run at once. */
  readonly slots: number;
  readonly close: () => Promise<void>;
}

export interface TuneTargetOptions {
  /** A built-in model, the path of a worker module, or a URL. */
  readonly target: string;
  /** Template of one item, as in `--payload`. */
  readonly item?: string | undefined;
  readonly workers: number;
  readonly seed: number;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Resolves what was named on the command line. @throws {UsageError} where there is no such thing, or nothing to send. */
export async function tuneTarget(options: TuneTargetOptions): Promise<TuneTarget> {
  const { target, item, seed, workers } = options;
  const given = item === undefined ? undefined : usage(() => itemsFromTemplate(item, seed));
  if (/^https?:\/\//i.test(target)) return urlBatches({ ...options, slots: workers, items: given });
  if (Object.hasOwn(builtinModels, target)) {
    const { workerUrl, data, input } = builtinModels[target as keyof typeof builtinModels]();
    const convert = (value: unknown): unknown =>
      input.kind === "floats" ? Float32Array.from(value as number[]) : value;
    const sample = given === undefined ? sampleOf(input, seed) : cycled(given.map(convert));
    return ofWorker(workerUrl, data, workers, sample);
  }
  const path = resolve(target);
  if (!/\.[cm]?[jt]s$/.test(target) || !existsSync(path)) {
    throw new UsageError(
      `there is no ${target}: name a model (${Object.keys(builtinModels).join(", ")}), the path of a worker module (.js) or a URL.`,
    );
  }
  const url = pathToFileURL(path);
  const exported = (await import(url.href)) as { sample?: unknown };
  if (given !== undefined) return ofWorker(url, undefined, workers, cycled(given));
  if (exported.sample === undefined) {
    throw new UsageError(
      `${target} does not say what to send: export const sample (an item, or index => item), or give --item.`,
    );
  }
  const { sample } = exported;
  return ofWorker(
    url,
    undefined,
    workers,
    typeof sample === "function" ? (sample as (i: number) => unknown) : () => sample,
  );
}

function ofWorker(url: URL, data: unknown, instances: number, sample: (index: number) => unknown): TuneTarget {
  // Nothing is handed over ahead: a run that waits behind another one would be timed with it.
  const executor = workerThread(url, { instances, data, ahead: 0 }) as Executor<unknown, unknown>;
  return { run: executor, sample, slots: instances, close: () => executor.close() };
}

/** Items of a built-in model's kind, 256 of them in turn. */
function sampleOf(input: ModelInput, seed: number): (index: number) => unknown {
  const random = seededRandom(seed);
  if (input.kind === "text") return cycled(Array.from({ length: 256 }, () => wordsItem(12, random)));
  if (input.kind === "floats") {
    return cycled(
      Array.from({ length: 256 }, () => Float32Array.from({ length: input.length }, () => 2 * random() - 1)),
    );
  }
  throw new UsageError(`items of this model (${input.kind}) can not be made up: give --item.`);
}

const cycled =
  (items: readonly unknown[]) =>
  (index: number): unknown =>
    items[index % items.length];
