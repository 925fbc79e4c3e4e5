import { BatcherError } from "sheaf";
import type { Caller } from "./caller.ts";

/** A sender's items run apart if more than this share of its latest items broke runs. */
const mostBroken = 0.25;
/** Roughly how many items count as the latest. */
const latest = 16;
/** Good items credited in advance, because two bad ones alone prove little. */
const credit = 7;

/** Most accounts; beyond that, the one that has gone longest without breaking a run is forgotten. */
const mostKept = 1000;

/** A sender's record with a model; recent items count more. */
interface Account {
  items: number;
  broken: number;
}

/**
 * The senders of a model (tenants, else connections) whose items broke runs. A broken run is charged to the sender of the bad item,
 * not to those who shared its batch. Nothing is kept about others.
 */
export class Accounts {
  readonly #bySender: Map<unknown, Account> = new Map();

  /** Whether more than a quarter of its latest items broke a run. */
  isBad(sender: unknown): boolean {
    const account = this.#bySender.get(sender);
    return account !== undefined && account.broken > mostBroken * account.items;
  }

  passed(sender: unknown): void {
    const account = this.#bySender.get(sender);
    if (account !== undefined) count(account, 0);
  }

  broke(sender: unknown, error: unknown): void {
    if (sender === undefined) return;
    const account = this.#bySender.get(sender) ?? { items: credit, broken: 0 };
    count(account, costOf(error));
    this.#bySender.delete(sender);
    this.#bySender.set(sender, account);
    if (this.#bySender.size > mostKept) this.#bySender.delete(this.#bySender.keys().next().value);
  }
}

/** It counts by what it costs others: a worker that starts again costs more than a run, and one that hangs the most. */
function costOf(error: unknown): number {
  const code = error instanceof BatcherError ? error.code : undefined;
  return code === "RUN_TIMEOUT" ? 3 : code === "WORKER_CRASHED" ? 2 : 1;
}

function count(account: Account, broken: number): void {
  const kept = 1 - 1 / latest;
  account.items = kept * account.items + 1;
  account.broken = kept * account.broken + broken;
}

/** Who sent an item, by the options of its request. */
interface Sent {
  readonly caller?: Caller | undefined;
  readonly sender?: object | string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Who is charged for an item: its tenant, else its connection; undefined if neither is known. */
export const senderOf = ({ caller, sender, signal }: Sent): object | string | undefined =>
  caller?.tenant ?? sender ?? signal;
