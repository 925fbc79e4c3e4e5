import { Group } from "./group.ts";
import type { Lane } from "../contract/settings.ts";

/**
 * A new group is served before those of the last batches, this many: a stream of new groups must not starve one
 * that was served.
 */
const newGroupHeadStart = 16;

/** The groups in which calls wait, and whose turn it is. */
export class Groups<In> {
  // New groups and served ones, each in order of turn: the smallest turn goes first.
  readonly #fresh: Map<unknown, Group<In>> = new Map();
  readonly #served: Map<unknown, Group<In>> = new Map();
  readonly #byTurns: boolean;
  #turn = 0;

  /** `byTurns`: of tenants. */
  constructor(byTurns: boolean) {
    this.#byTurns = byTurns;
  }

  of(key: unknown): Group<In> {
    const known = this.#served.get(key) ?? this.#fresh.get(key);
    if (known !== undefined) return known;
    const group = new Group<In>(key, this.#byTurns);
    group.turn = this.#turn - newGroupHeadStart;
    this.#fresh.set(key, group);
    return group;
  }

  all(): Group<In>[] {
    return [...this.#fresh.values(), ...this.#served.values()];
  }

  /** The least recently served group first. */
  *inTurn(): Generator<Group<In>, void> {
    const freshGroups = this.#fresh.values();
    const servedGroups = this.#served.values();
    let fresh = freshGroups.next();
    let served = servedGroups.next();
    while (fresh.done !== true || served.done !== true) {
      if (served.done === true || (fresh.done !== true && fresh.value.turn < served.value.turn)) {
        yield fresh.value!;
        fresh = freshGroups.next();
      } else {
        yield served.value;
        served = servedGroups.next();
      }
    }
  }

  /** With tenants: the group first whose first item in this lane is of the tenant that goes next. */
  byTurns(lane: Lane): Group<In>[] {
    return this.all()
      .map((group) => ({ group, row: group.laneQueue(lane).turns!.top() }))
      .sort(({ row: a }, { row: b }) => {
        if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
        return a.served - b.served || a.turn - b.turn || a.head!.place - b.head!.place;
      })
      .map(({ group }) => group);
  }

  served(group: Group<In>): void {
    group.turn = ++this.#turn;
    this.forget(group);
    if (group.waiting > 0) this.#served.set(group.key, group);
  }

  /** Nothing is left waiting in it. */
  forget(group: Group<In>): void {
    this.#fresh.delete(group.key);
    this.#served.delete(group.key);
  }
}
