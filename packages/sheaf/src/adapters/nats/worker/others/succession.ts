import type { QueueConnection } from "../../wire/connection.ts";
import type { QueueSettings } from "../../queue/options.ts";
import type { QueueNames } from "../../queue/topology.ts";
import { brief, fits, type ServedVersion, versionsOf } from "../../queue/versions.ts";
import { workerInfoOf, type WorkerInfo } from "../../queue/worker-registry.ts";
import type { Peers } from "./peers.ts";

/**
 * Other workers answer within a tenth of a second, on a busy machine later and one after the other: the time counts from
 * the last worker that became known, this one included. A worker that judges earlier believes that it is alone.
 */
const answersTakeMs = 1000;
/** Some connections never deliver their own messages: a worker that does not hear itself judges after this time. */
const withoutEchoMs = 3000;
/** A worker this young may still meet older workers for the first time. */
const youngMs = 10_000;
const maxNewer = 10_000;

export interface SuccessionParts {
  readonly settings: QueueSettings;
  readonly names: QueueNames;
  readonly link: QueueConnection;
  readonly peers: Peers;
  /** This worker's own report. */
  readonly about: () => WorkerInfo;
  /** Called when front ends should be notified. */
  readonly changed: () => void;
}

/**
 * One version at a time: items go to the version with the highest generation. A worker of a new version takes over for
 * all of its version once as many slots serve it as serve the current one; a worker that was of the current version once
 * never takes it back, so that the newer one stays.
 */
export class Succession {
  generation = 0;
  readonly #parts: SuccessionParts;
  #judgesAtMs = Infinity;
  #grownAtMs = Infinity;
  /** Workers heard while it was young. */
  readonly #heard: Set<string> = new Set();
  /** Workers that announced themselves here: they started later. */
  readonly #newer: Set<string> = new Set();
  #wasCurrent = false;
  #unavailableReason: string | undefined;
  #warnedOf: string | undefined;

  constructor(parts: SuccessionParts) {
    this.#parts = parts;
  }

  /** Why this worker gets no items, where another version or another model has its place. */
  get unavailableReason(): string | undefined {
    return this.#unavailableReason;
  }

  /** Watches for workers that start, and announces itself to those that run. */
  begin(): void {
    const { names, link, peers, about } = this.#parts;
    link.subscribe(
      names.joined,
      ({ data }) => {
        const info = workerInfoOf(data);
        const own = about();
        if (info.route !== own.route) peers.listen();
        if (this.#newer.size >= maxNewer) this.#newer.clear();
        if (info.id !== own.id) this.#newer.add(info.id);
        peers.add(info);
        this.look();
      },
      { need: "optional" },
    );
    peers.listen();
    link.publish(names.joined, JSON.stringify(about()));
    const nowMs = this.#parts.settings.clock.now();
    this.#judgesAtMs = nowMs + withoutEchoMs;
    this.#grownAtMs = nowMs + youngMs;
  }

  /** Compares itself with the others there are. */
  look(): void {
    const { settings, names, link, peers, changed } = this.#parts;
    const own = this.#parts.about();
    const nowMs = settings.clock.now();
    const all = peers.all();
    this.#meet(all, nowMs);
    if (!peers.isListening || !own.isServing || nowMs < this.#judgesAtMs) return;
    const others = all.filter(({ id }) => id !== own.id);
    const kin = others.filter(({ serves }) => fits(own.serves, serves));
    const versions = versionsOf([own, ...kin]);
    const current = versions[0]!;
    const mine = versions.find(({ route }) => route === own.route)!;
    const highest = Math.max(0, ...kin.filter(({ route }) => route !== own.route).map(({ generation }) => generation));
    const isMixed = others.some(({ route }) => route !== own.route);
    // Among its like a worker stops listening to all the others.
    if (isMixed) peers.listen();
    else peers.settle();

    const before = this.generation;
    this.generation = Math.max(before, mine.generation);
    const isCurrent = current === mine;
    const takesOver = !this.#wasCurrent && !isCurrent && mine.slots >= current.slots;
    if (takesOver || (isCurrent && isMixed && this.generation <= highest)) this.generation = highest + 1;
    this.#judge(mine, isCurrent || takesOver ? undefined : current, others);
    this.#wasCurrent ||= (isCurrent || takesOver) && this.#unavailableReason === undefined;
    if (this.generation === before) return;
    changed();
    if (takesOver) link.publish(names.joined, JSON.stringify(this.#parts.about()));
  }

  /** A worker that is heard first by its heartbeat was there before this one: a judgement without it does not count. */
  #meet(all: readonly WorkerInfo[], nowMs: number): void {
    if (nowMs > this.#grownAtMs) return this.#heard.clear();
    for (const { id } of all) {
      if (this.#newer.has(id) || this.#heard.has(id)) continue;
      this.#heard.add(id);
      this.#judgesAtMs = nowMs + answersTakeMs;
      this.#wasCurrent = false;
    }
  }

  #judge(mine: ServedVersion, current: ServedVersion | undefined, others: readonly WorkerInfo[]): void {
    const incompatible = others.filter(({ serves, isServing }) => isServing && !fits(mine.serves, serves));
    const theirs = incompatible.reduce((sum, { slots }) => sum + slots, 0);
    this.#unavailableReason = undefined;
    if (current !== undefined && this.#wasCurrent) {
      this.#unavailableReason = `${named(current)} has taken over from this worker's ${named(mine)}; end it, or start it with the new one`;
      this.#warn(this.#unavailableReason);
    } else if (current !== undefined) {
      this.#warn(
        `this worker serves ${named(mine)}, others ${named(current)} on ${current.slots} slots; it gets no items until as many slots serve ${named(mine)}`,
      );
    } else if (theirs >= mine.slots) {
      const message = `this worker serves ${brief(mine.serves)}, others of this name serve ${brief(incompatible[0]!.serves)}; start all with the same model`;
      // Who was there first is more likely to be right.
      const isLater = incompatible.some(({ id }) => !this.#newer.has(id));
      if (!this.#wasCurrent && isLater) this.#unavailableReason = message;
      this.#warn(message);
    } else {
      this.#warnedOf = undefined;
    }
  }

  #warn(message: string): void {
    if (message === this.#warnedOf) return;
    this.#warnedOf = message;
    const { queue, warn } = this.#parts.settings;
    warn(`sheaf: the queue ${queue}: ${message}.`);
  }
}

const named = ({ version }: ServedVersion): string =>
  version === undefined ? "no version" : `version ${brief(version)}`;
