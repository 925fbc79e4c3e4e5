import { workerThread } from "sheaf/node";

/**
 * Items a second that a model's worker answers with full batches, one running and one ahead, and nothing else beside:
 * what no server over it can pass.
 */
export async function modelLimit(url, { data, item, batch = 32, durationMs }) {
  const executor = workerThread(url, { data, niceness: 0 });
  await executor.ready();
  const items = Array.from({ length: batch }, () => item);
  const { signal } = new AbortController();
  const run = () => executor.run(items, { signal, batchId: 1, size: batch, attempt: 1 });
  for (let i = 0; i < 20; i++) await run();
  let batches = 0;
  const startedAtMs = performance.now();
  const feed = async () => {
    while (performance.now() - startedAtMs < durationMs) {
      await run();
      batches++;
    }
  };
  await Promise.all([feed(), feed()]);
  const perS = (batches * batch * 1000) / (performance.now() - startedAtMs);
  await executor.close();
  return perS;
}
