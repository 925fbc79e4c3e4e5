import { Chunk } from "../queue/chunks/chunk.ts";
import type { LaneQueue } from "../queue/lane-queue.ts";
import type { Queue } from "../queue/queue.ts";
import type { Turns } from "../queue/tenants/turns.ts";

/** Takes the front of a lane queue by turns of tenants. Where they agree with the order of arrival, a chunk is a batch without a copy. */
export function takeTurns<In>(queue: Queue<In>, laneQueue: LaneQueue<In>, turns: Turns<In>, limit: number): Chunk<In> {
  const tenants = queue.tenants!;
  const head = laneQueue.head!;
  const mayBeWhole = head.live === head.count && head.count <= limit;
  let claim = turns.top()?.first;
  let inOrder = 0;
  for (; mayBeWhole && claim?.chunk === head && claim.index === inOrder; claim = turns.top()?.first) {
    tenants.charge(claim.tenant, head.weights?.[inOrder] ?? 1);
    tenants.left(head, inOrder++);
  }
  const isWhole = inOrder === head.count;
  const batch = isWhole
    ? queue.takeHead(laneQueue)
    : new Chunk<In>(head.epoch, undefined, Math.min(limit, laneQueue.live));
  for (let index = 0; index < inOrder && !isWhole; index++) queue.move(head, index, batch);
  for (; claim !== undefined && batch.count < limit; claim = turns.top()?.first) {
    const { tenant, chunk, index } = claim;
    tenants.charge(tenant, chunk.weights?.[index] ?? 1);
    queue.move(chunk, index, batch);
  }
  return batch;
}
