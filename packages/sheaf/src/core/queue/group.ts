import { type Entry, EntryList } from "./entry.ts";
import type { Leavers } from "./leavers.ts";
import type { Lane } from "../contract/settings.ts";
import { Turns } from "./turns.ts";
import type { BlockedCalls } from "./order-keys.ts";

interface BulkBounds {
  readonly fill: { readonly items: number; readonly weight: number } | undefined;
  readonly onlyBulk: boolean;
}

/** The waiting calls of one group key, which never share a batch with those of another. */
export class Group<In = unknown> {
  readonly key: unknown;
  readonly laneQueues: readonly [LaneQueue<In>, LaneQueue<In>, LaneQueue<In>];
  /** The policy asked to hold it: the reason of its next batch is "hold" rather than "idle". */
  held = false;
  /** Under standing overload: its newest items go first, in each lane but bulk. */
  newestFirst = false;
  /** Whether an item has then waited for too long, for the patience of its tenant's callers. */
  isTooOld: (arrivedAtMs: number, leavers?: Leavers) => boolean = () => false;
  /** Waiting calls that a flush or drain sends without further holding. */
  released = 0;
  /** Which of the two, the last one if both. */
  releasedBy: "flush" | "drain" = "flush";
  /** When it should go, in batches of the queue: the smallest turn first. */
  turn = 0;

  /** `byTurns`: of tenants. */
  constructor(key: unknown, byTurns: boolean) {
    this.key = key;
    const laneQueue = (lane: Lane): LaneQueue<In> => new LaneQueue<In>(this, lane, byTurns);
    this.laneQueues = [laneQueue(0), laneQueue(1), laneQueue(2)];
  }

  get waiting(): number {
    const [immediate, interactive, bulk] = this.laneQueues;
    return immediate.live + interactive.live + bulk.live;
  }

  laneQueue(lane: Lane): LaneQueue<In> {
    return this.laneQueues[lane];
  }

  /** The lane it is served by: that of the first item to go. */
  get firstLane(): Lane {
    const [immediate, interactive] = this.laneQueues;
    if (immediate.live > 0) return 0;
    return interactive.live > 0 ? 1 : 2;
  }

  /** Its calls that may go, as far as bulk is bounded: to what live calls may take along, or to nothing else. */
  mayGo({ fill, onlyBulk }: BulkBounds): { readonly waiting: number; readonly oldestAtMs: number } {
    const { live: bulk } = this.laneQueue(2);
    if (onlyBulk) return { waiting: bulk, oldestAtMs: this.laneQueue(2).oldestAtMs() };
    if (fill === undefined) return { waiting: this.waiting, oldestAtMs: this.oldestAtMs() };
    const filling = fill.weight > 0 ? Math.min(bulk, Math.floor(fill.items)) : 0;
    // What stays is old: live calls must not count as held for as long.
    return { waiting: this.waiting - bulk + filling, oldestAtMs: this.oldestAtMs(filling > 0 ? 2 : 1) };
  }

  /** All that wait, from the lowest lane up; copy them to remove some. */
  *entries(): Generator<Entry<In>, void> {
    for (const laneQueue of this.laneQueues.toReversed())
      for (const list of [laneQueue.blocked, laneQueue])
        for (let entry = list?.head; entry !== undefined; entry = entry.next) yield entry;
  }

  /** Of the first `most` items to go in each lane down to `lowest`; `Infinity` without one. */
  firstDeadlineAtMs(most: number, lowest: Lane = 2): number {
    let firstAtMs = Infinity;
    for (const { lane, head, blocked } of this.laneQueues) {
      if (lane > lowest) break;
      for (let entry = head, left = most; entry !== undefined && left > 0; entry = entry.next, left--)
        firstAtMs = Math.min(firstAtMs, entry.terms.deadlineAtMs);
      for (const { terms } of blocked?.ready ?? []) firstAtMs = Math.min(firstAtMs, terms.deadlineAtMs);
    }
    return firstAtMs;
  }

  /** Of the lanes down to `lowest`. */
  oldestAtMs(lowest: Lane = 2): number {
    const [immediate, interactive, bulk] = this.laneQueues;
    const liveAtMs = Math.min(immediate.oldestAtMs(), interactive.oldestAtMs());
    return lowest < 2 ? liveAtMs : Math.min(liveAtMs, bulk.oldestAtMs());
  }
}

/** The waiting calls of one lane of one group, first in first out. */
export class LaneQueue<In = unknown> extends EntryList<In> {
  readonly laneQueue: this = this;
  readonly group: Group<In>;
  readonly lane: Lane;
  /** Calls that wait here, blocked ones included. */
  live = 0;
  /** Calls that their order key blocks; made when the first one is met while a batch is chosen. */
  blocked: BlockedCalls<In> | undefined;
  readonly turns: Turns<In> | undefined;
  /**
   * Arrival of the oldest item whose place does not show its age: promotion puts an item last, and an item can outlive
   * the caller that it came with. A lower bound until the queue is empty.
   */
  outOfPlaceAtMs: number = Infinity;

  constructor(group: Group<In>, lane: Lane, byTurns: boolean) {
    super();
    this.turns = byTurns ? new Turns<In>() : undefined;
    this.group = group;
    this.lane = lane;
  }

  /** The first entry from `entry` on that came later than `atMs`, or in the same burst and not with an earlier batch. */
  firstAfter(atMs: number, batchId: number, entry: Entry<In> | undefined = this.head): Entry<In> | undefined {
    for (; entry !== undefined; entry = entry.next) {
      const { arrivedAtMs } = entry.terms;
      const { putBackFrom = Infinity } = entry.ties ?? {};
      if (putBackFrom !== batchId && (arrivedAtMs > atMs || (arrivedAtMs === atMs && putBackFrom > batchId))) break;
    }
    return entry;
  }

  /** `calls` have entered, or left where it is negative. */
  count(calls: number): void {
    this.live += calls;
    if (this.live === 0) this.outOfPlaceAtMs = Infinity;
  }

  keepAge(arrivedAtMs: number): void {
    if (arrivedAtMs < this.outOfPlaceAtMs) this.outOfPlaceAtMs = arrivedAtMs;
  }

  /** Arrival of its oldest item that is not known to be blocked, `Infinity` without one. */
  oldestAtMs(): number {
    const { head } = this;
    const back = this.blocked?.ready[0];
    if (head === undefined && back === undefined) return Infinity;
    return Math.min(head?.terms.arrivedAtMs ?? Infinity, back?.terms.arrivedAtMs ?? Infinity, this.outOfPlaceAtMs);
  }
}
