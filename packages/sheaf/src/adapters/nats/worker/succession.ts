import type { NatsSubscription } from "../wire/client.ts";
import type { QueueConnection } from "../wire/connection.ts";
import type { QueueSettings } from "../queue/options.ts";
import type { QueueNames } from "../queue/topology.ts";
import { brief, fits, type ServedVersion, versionsOf } from "../queue/versions.ts";
import { WorkerRegistry, workerInfoOf, type WorkerInfo } from "../queue/worker-registry.ts";

/** Among its like for so long, a worker stops listening to all the others: there may be many. */
const settledAfterMs = 5000;
/** Others answer within a tenth of a second. Who judges earlier takes itself for alone. */
const answersTakeMs = 300;

export interface SuccessionParts {
  readonly settings: QueueSettings;
  readonly names: QueueNames;
  readonly link: QueueConnection;
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
  readonly #registry: WorkerRegistry;
  #listening: NatsSubscription | undefined;
  #mixedAtMs = 0;
  #judgesAtMs = Infinity;
  #wasCurrent = false;
  #unavailableReason: string | undefined;
  #warnedOf: string | undefined;

  constructor(parts: SuccessionParts) {
    this.#parts = parts;
    this.#registry = new WorkerRegistry(parts.settings.clock);
  }

  /** Why this worker gets no items, where another version or another model has its place. */
  get unavailableReason(): string | undefined {
    return this.#unavailableReason;
  }

  /** Watches for workers that start, and announces itself to those that run. */
  begin(): void {
    const { names, link, about } = this.#parts;
    this.#registry.begin();
    link.subscribe(
      names.joined,
      ({ data }) => {
        const info = workerInfoOf(data);
        if (info.route !== about().route) this.#listen();
        this.#registry.add(info);
        this.look();
      },
      { need: "optional" },
    );
    this.#listen();
    link.publish(names.joined, JSON.stringify(about()));
    this.#judgesAtMs = this.#parts.settings.clock.now() + answersTakeMs;
  }

  stop(): void {
    this.#registry.stop();
  }

  /** Compares itself with the others there are. */
  look(): void {
    const { settings, names, link, changed } = this.#parts;
    const own = this.#parts.about();
    const nowMs = settings.clock.now();
    if (this.#listening === undefined || !own.isServing || nowMs < this.#judgesAtMs) return;
    const others = this.#registry.all().filter(({ id }) => id !== own.id);
    const kin = others.filter(({ serves }) => fits(own.serves, serves));
    const versions = versionsOf([own, ...kin]);
    const current = versions[0]!;
    const mine = versions.find(({ route }) => route === own.route)!;
    const highest = Math.max(0, ...kin.filter(({ route }) => route !== own.route).map(({ generation }) => generation));
    const isMixed = others.some(({ route }) => route !== own.route);
    if (isMixed) this.#mixedAtMs = nowMs;
    else if (nowMs - this.#mixedAtMs > settledAfterMs) this.#settle();

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
      if (!this.#wasCurrent) this.#unavailableReason = message;
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

  #listen(): void {
    this.#mixedAtMs = this.#parts.settings.clock.now();
    if (this.#listening !== undefined) return;
    const { names, link } = this.#parts;
    this.#listening = link.subscribe(
      names.alive,
      ({ data }) => {
        this.#registry.add(workerInfoOf(data));
        this.look();
      },
      { need: "optional" },
    );
    link.publish(names.discover);
  }

  #settle(): void {
    this.#listening?.unsubscribe();
    this.#listening = undefined;
  }
}

const named = ({ version }: ServedVersion): string =>
  version === undefined ? "no version" : `version ${brief(version)}`;
