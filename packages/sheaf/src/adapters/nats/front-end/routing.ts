import { domainOf, type QueueSettings } from "../queue/options.ts";
import { brief, fits, routeOf, versionsOf } from "../queue/versions.ts";
import { WorkerRegistry, type WorkerInfo } from "../queue/worker-registry.ts";
import { FleetSize } from "./fleet-size.ts";

/** Which workers get a front end's items: those of one version at a time. */
export class Routing {
  readonly #settings: QueueSettings;
  readonly #registry: WorkerRegistry;
  readonly #changed: () => void;
  /** Where new items go. Before the first heartbeat it is a guess; while no worker serves, the last one. */
  route: string;
  /** Of the workers that got them. */
  readonly size: FleetSize = new FleetSize();
  /** Why no worker gets its items, where all of them are in another JetStream domain. */
  domainConflict: string | undefined;
  #serving: readonly WorkerInfo[] = [];
  #others: readonly WorkerInfo[] = [];
  /** Of all workers that are there, whether they serve or not. */
  #routes: ReadonlySet<string> = new Set();

  /** `changed` is called at every heartbeat, and regularly. */
  constructor(settings: QueueSettings, changed: () => void) {
    this.#settings = settings;
    this.#changed = changed;
    this.#registry = new WorkerRegistry(settings.clock, () => this.#look());
    this.route = routeOf(settings.serves, undefined);
  }

  stop(): void {
    this.#registry.stop();
  }

  heard(info: WorkerInfo): void {
    this.#registry.add(info);
    this.#look();
    if (info.isServing && info.slots > 0 && info.route === this.route)
      this.size.heard(info.id, this.#settings.clock.now());
  }

  /** All that are there. */
  all(): readonly WorkerInfo[] {
    return this.#registry.all();
  }

  /** Those that have sent no heartbeat for so long. */
  silentFor(ms: number): readonly WorkerInfo[] {
    return this.#registry.silentFor(ms);
  }

  /** It is gone. */
  lost(id: string): void {
    this.#registry.remove(id);
    this.#look();
  }

  /** Those that get this front end's items. */
  get workers(): readonly WorkerInfo[] {
    return this.#serving;
  }

  /** Those that serve another version, or something else altogether. */
  get others(): readonly WorkerInfo[] {
    return this.#others;
  }

  /** Whether a worker of that version is there, be it one that takes no more items. */
  isStaffed(route: string): boolean {
    return this.#routes.has(route);
  }

  /** The slots of all of them. */
  get slots(): number {
    return this.#serving.reduce((sum, { slots }) => sum + slots, 0);
  }

  /** How long all of them together take for `items`, in milliseconds; undefined until it is known. */
  drainMs(items: number): number | undefined {
    let itemsPerMs = 0;
    for (const { slots, runMs, runSize } of this.#serving) if (runMs > 0) itemsPerMs += (slots * runSize) / runMs;
    return itemsPerMs > 0 ? items / itemsPerMs : undefined;
  }

  #look(): void {
    const all = this.#registry.all();
    // Core NATS knows no domains.
    const own = this.#settings.durability === "none" ? undefined : domainOf(this.#settings);
    const isIn = ({ domain = own }: WorkerInfo): boolean => own === undefined || domain === own;
    const fitting = all.filter((info) => fits(this.#settings.serves, info.serves) && isIn(info));
    const stranger = fitting.length > 0 ? undefined : all.find((info) => !isIn(info));
    this.domainConflict =
      stranger &&
      `its workers are in ${domainName(stranger.domain)}, this front end is in ${domainName(own)}: ` +
        "each would have a queue of its own. Connect both to servers of the same domain";
    const [current] = versionsOf(fitting);
    if (current !== undefined) this.route = current.route;
    this.#serving = fitting.filter(({ route, isServing }) => isServing && route === this.route);
    this.#others = all.filter((info) => info.isServing && !this.#serving.includes(info));
    this.#routes = new Set(all.map(({ route }) => route));
    this.#changed();
  }
}

const domainName = (domain = ""): string =>
  domain === "" ? "the default JetStream domain" : `the JetStream domain ${brief(domain)}`;
