import { describe } from "sheaf/internal";
import { defineWorker, type WorkerDefinition } from "sheaf/node";
import { samplerOf } from "./sample-items.ts";

/** How many items of a sample are asked for. */
export const sampleCount: number = 3;

export interface ModuleExports {
  /** The items of its `sample`; none where it exports none. */
  readonly samples: readonly unknown[];
  readonly isCacheable: boolean | undefined;
  readonly onBatchError: "bisect" | "fail" | undefined;
}

async function exportsOf(url: string): Promise<ModuleExports> {
  const { sample, isCacheable, onBatchError } = (await import(url)) as Readonly<Record<string, unknown>>;
  if (isCacheable !== undefined && typeof isCacheable !== "boolean")
    throw new TypeError(`isCacheable must be true or false, got ${describe(isCacheable)}`);
  if (onBatchError !== undefined && onBatchError !== "bisect" && onBatchError !== "fail")
    throw new TypeError(`onBatchError must be "bisect" or "fail", got ${describe(onBatchError)}`);
  if (sample === undefined) return { samples: [], isCacheable, onBatchError };
  const make = samplerOf(sample);
  return { samples: Array.from({ length: sampleCount }, (_, index) => make(index)), isCacheable, onBatchError };
}

const worker: WorkerDefinition<string, ModuleExports | Error> = defineWorker({
  // A module that cannot be loaded is an answer, not a crash of the batch.
  run: (urls: string[]) => Promise.all(urls.map((url) => exportsOf(url).catch((error: unknown) => error as Error))),
});
export default worker;
