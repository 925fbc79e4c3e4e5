import { defineWorker, type WorkerDefinition } from "sheaf/node";

/** How many items of a sample are asked for. */
export const sampleCount: number = 3;

/** The items of a worker module's `sample`; none where it exports none. */
async function samplesOf(url: string): Promise<unknown[]> {
  const { sample } = (await import(url)) as { sample?: unknown };
  if (sample === undefined) return [];
  const make = typeof sample === "function" ? (sample as (index: number) => unknown) : (): unknown => sample;
  return Array.from({ length: sampleCount }, (_, index) => make(index));
}

const worker: WorkerDefinition<string, unknown[] | Error> = defineWorker({
  // A module that cannot be loaded is an answer, not a crash of the batch.
  run: (urls: string[]) => Promise.all(urls.map((url) => samplesOf(url).catch((error: unknown) => error as Error))),
});
export default worker;
