import type { BatchCounts } from "../result.ts";

/** The batch-size histogram of a server at one moment, over all its batchers. */
export interface BatchSizeReading {
  /** Number of batches of up to this size; Infinity: all. */
  readonly buckets: ReadonlyMap<number, number>;
  readonly items: number;
}

const bucketLine = /^sheaf_batch_size_items_bucket\{(?:[^}]*,)?\s*le="([^"]+)"[^}]*\}\s+(\S+)/;
const sumLine = /^sheaf_batch_size_items_sum(?:\{[^}]*\})?\s+(\S+)/;
const maxBytes = 4 * 1024 * 1024;

/** Reads it from a Prometheus page; undefined where the page has none. */
export function batchSizeReading(page: string): BatchSizeReading | undefined {
  const buckets = new Map<number, number>();
  let items = 0;
  for (const line of page.split("\n")) {
    items += Number(sumLine.exec(line)?.[1] ?? 0);
    const bucket = bucketLine.exec(line);
    if (bucket === null) continue;
    const upTo = bucket[1] === "+Inf" ? Infinity : Number(bucket[1]);
    buckets.set(upTo, (buckets.get(upTo) ?? 0) + Number(bucket[2]));
  }
  return buckets.size === 0 ? undefined : { buckets, items };
}

export function batchesBetween(before: BatchSizeReading | undefined, after: BatchSizeReading): BatchCounts {
  let counted = 0;
  const sizes = [...after.buckets]
    .sort(([a], [b]) => a - b)
    .map(([upTo, count]) => {
      const upToHere = count - (before?.buckets.get(upTo) ?? 0);
      const batches = upToHere - counted;
      counted = upToHere;
      return { upTo: upTo === Infinity ? null : upTo, batches };
    });
  return { meanSize: counted === 0 ? 0 : (after.items - (before?.items ?? 0)) / counted, sizes };
}

/** The histogram of a running server; undefined where it publishes none, or nothing that can be read in 2 s. */
export async function readBatchSizes(origin: string): Promise<BatchSizeReading | undefined> {
  try {
    const reply = await fetch(new URL("/metrics", origin), { signal: AbortSignal.timeout(2000) });
    if (!reply.ok || Number(reply.headers.get("content-length") ?? 0) > maxBytes) return undefined;
    return batchSizeReading(await reply.text());
  } catch {
    // Any HTTP service can be measured; most have no such page.
    return undefined;
  }
}
