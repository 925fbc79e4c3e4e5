/**
 * Every library, set up as its readme says, to batch `batchSize` items that arrive in one turn of the event loop. Each
 * gives a function that is called with one item and promises its result; the batch function echoes its items.
 */
import { AsyncBatcher } from "@tanstack/pacer";
import { create, windowedFiniteBatchScheduler } from "@yornaath/batshit";
import DataLoader from "dataloader";
import { Batcher } from "promise-batcher";

const echo = async (items) => items;

export const peers = {
  dataloader: (maxBatchSize) => {
    const loader = new DataLoader(echo, { cache: false, maxBatchSize });
    return (item) => loader.load(item);
  },
  // Results are looked up by query, so the batch function must build the index.
  batshit: (maxBatchSize) => {
    const batcher = create({
      fetcher: async (queries) => new Map(queries.map((query) => [query, query])),
      resolver: (results, query) => results.get(query),
      scheduler: windowedFiniteBatchScheduler({ windowMs: 1, maxBatchSize }),
    });
    return (item) => batcher.fetch(item);
  },
  "promise-batcher": (maxBatchSize) => {
    const batcher = new Batcher({ batchingFunction: echo, maxBatchSize, queuingDelay: 1 });
    return (item) => batcher.getResult(item);
  },
  // addItem promises the result of the whole batch: the caller's own result has to travel with the item.
  pacer: (maxSize) => {
    const batcher = new AsyncBatcher(
      async (entries) => {
        for (const { item, resolve } of entries) resolve(item);
      },
      { maxSize, wait: 1 },
    );
    return (item) =>
      new Promise((resolve, reject) => {
        batcher.addItem({ item, resolve }).catch(reject);
      });
  },
};
