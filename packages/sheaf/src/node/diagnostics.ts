import { channel } from "node:diagnostics_channel";
import type { Batcher } from "../core/contract/batcher.ts";
import type { BatchRecord } from "../policies/policy.ts";

/** The message on the channel `sheaf:batch`, once a batch. */
export interface BatchMessage {
  readonly name: string;
  readonly record: BatchRecord;
}

/**
 * Publishes every batch of a batcher on Node's diagnostics channel `sheaf:batch`, where an agent or a script can follow
 * it without a reference to the batcher. Without a listener it costs one check a batch. @returns a function that ends
 * it
 */
export function publishBatches(batcher: Pick<Batcher<never, unknown>, "name" | "subscribe">): () => void {
  const batches = channel("sheaf:batch");
  const { name } = batcher;
  return batcher.subscribe((record) => {
    if (batches.hasSubscribers) batches.publish({ name, record } satisfies BatchMessage);
  });
}
