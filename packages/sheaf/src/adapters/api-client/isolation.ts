import { runHandleOf, type BaseRunHandle } from "../../core/contract/base-run-handle.ts";
import { BatcherError } from "../../core/contract/errors.ts";
import type { BatchFunction } from "../../core/contract/executor.ts";
import { checkResults } from "../../core/dispatch/run.ts";
import type { Clock } from "../../core/runtime/runtime.ts";
import { warnOnce } from "../../core/runtime/warnings.ts";
import type { LearnedRateLimit } from "../../limits/learned-rate-limit.ts";
import type { RequestSize } from "../../limits/request-sizes.ts";
import { backOffMs } from "./back-off.ts";
import { blamesInputs, errorHints, isLostConnection, withHints } from "./api-error.ts";
import { namedLimitOf, signatureOf } from "./refusals.ts";
import { wait, type ServiceHealth } from "./retries.ts";

/** How failed requests are split. */
export interface Isolating<In, Out> {
  readonly name: string;
  readonly limit: LearnedRateLimit;
  readonly health: ServiceHealth;
  readonly clock: Clock;
  /** 0 to 1. */
  readonly random: () => number;
  readonly sizeOf: (items: readonly In[]) => RequestSize;
  /** Most tokens in a request, the limit up to which batches were filled. */
  readonly maxTokens: number;
  readonly textOf: (item: In) => unknown;
  readonly blameOf: (error: unknown) => Blame;
  readonly once: BatchFunction<In, Out>;
  /** Runs a request with retries. */
  readonly patiently: BatchFunction<In, Out>;
}

/** Whose fault an error may be: an item's or the size's; an item's or the service's; neither an item's nor the size's. */
export type Blame = "request" | "failure" | "none";

/** A batch that turns out this much too heavy is cut before it is sent. */
const weighedLow = 1.02;
/** Most parts into which a request is cut because of a number in a refusal's message. */
const mostParts = 16;
/** If this many single items get the same error and nothing passes, the error is not theirs. */
const sameErrors = 3;
/** Single items sent to find out whether a service fails everything. */
const loneTries = 2;
/** Bounds the runs that look for items that make the service fail: this times log2 n for a batch of n. */
const runsPerLevel = 8;

/**
 * Finds out what is wrong with a request that the service refuses or fails: an item, the size, or neither. The items of a part that
 * passes get their results at once. An item that is refused alone gets the error. If all items pass in parts, the size was at fault:
 * that is learned, and the rest goes back to the queue, for smaller requests.
 */
export function withIsolation<In, Out>(how: Isolating<In, Out>): BatchFunction<In, Out> {
  const { limit, sizeOf, maxTokens, patiently, blameOf } = how;
  return async (items, context) => {
    if (items.length === 1) return patiently(items, context);
    const size = sizeOf(items);
    const exceeds = limit.sizes.exceeds(size);
    const isTry = exceeds && limit.sizes.tries(size);
    const batch = new Isolation(items, runHandleOf(context), how, isTry);
    // Replies that came while its items waited have shown that they were weighed too low.
    const isTooMuch = size.tokens > weighedLow * maxTokens;
    if (isTooMuch || (exceeds && !isTry)) return batch.cut();
    try {
      return await patiently(items, context);
    } catch (error) {
      if (context.signal.aborted || blameOf(error) === "none") throw error;
      await batch.find(error);
      // All items are answered, but observers must still see that the batch failed.
      throw error;
    } finally {
      if (isTry) limit.sizes.tried();
    }
  };
}

const isBlamed = (error: unknown): boolean => {
  const { status, retryAfterMs } = errorHints(error);
  if (isHang(error)) return true;
  // An error with `Retry-After` is not about an item.
  return blamesInputs(error) || (isOfSomeOnly(error, status) && retryAfterMs === undefined);
};

/** No reply came within `runTimeoutMs`. */
export const isHang = (error: unknown): boolean => error instanceof BatcherError && error.code === "RUN_TIMEOUT";

/** A failure or a refused key is an item's fault if others get through with that key, as when a content policy refuses a text. */
const isOfSomeOnly = (error: unknown, status: number = 0): boolean =>
  status >= 500 || status === 403 || isLostConnection(error);

/**
 * Whose fault an error may be, according to `shouldBisect`. By default a 400, 413 or 422 may be an item's fault; a 403, a 5xx or a
 * lost connection only if others get through.
 */
export function blames(shouldBisect: (error: unknown) => boolean = isBlamed): (error: unknown) => Blame {
  const warn = warnOnce();
  return (error) => {
    try {
      if (!shouldBisect(error)) return "none";
    } catch (bug) {
      warn("shouldBisect threw; the batch was not bisected.", bug);
      return "none";
    }
    return isOfSomeOnly(error, errorHints(error).status) ? "failure" : "request";
  };
}

/** One batch being split. Parts are lists of indices in it. */
class Isolation<In, Out> {
  readonly #items: readonly In[];
  readonly #handle: BaseRunHandle;
  readonly #how: Isolating<In, Out>;
  readonly #isTry: boolean;
  /** How many requests, of any batch, had passed when this one was sent. */
  readonly #passedBefore: number;

  constructor(items: readonly In[], handle: BaseRunHandle, how: Isolating<In, Out>, isTry: boolean) {
    this.#items = items;
    this.#handle = handle;
    this.#how = how;
    this.#isTry = isTry;
    this.#passedBefore = how.limit.passes;
  }

  /** Sends as many items as a request may hold and puts the others back into the queue. */
  async cut(): Promise<never> {
    const { limit, maxTokens, patiently, name } = this.#how;
    const places = [...this.#items.keys()];
    let count = places.length - 1;
    const isTooMuch = (size: RequestSize): boolean => size.tokens > maxTokens || limit.sizes.exceeds(size);
    while (count > 1 && isTooMuch(this.#sizeOf(places.slice(0, count)))) count--;
    const first = places.slice(0, count);
    const error = await this.#send(first, patiently, true);
    if (error !== undefined && count === 1) this.#fail(0, error);
    else if (error !== undefined) await this.find(error, first);
    return this.#putBack(new Error(`${name}: the batch is larger than the service accepts in one request.`));
  }

  /** Gives every item its result or its error. Throws if the rest goes back to the queue or gets the error as a whole. */
  async find(error: unknown, places: readonly number[] = [...this.#items.keys()]): Promise<void> {
    const { limit } = this.#how;
    if (this.#how.blameOf(error) === "failure") return this.#findFailure(error, places);
    // The limit was learned while this request was in flight.
    if (!this.#isTry && limit.sizes.exceeds(this.#sizeOf(places))) return this.#putBack(error);
    if (limit.passes > 0 || errorHints(error).itemIndex !== undefined) return this.#search({ error, part: places });
    const { rest, errors } = await this.#tryLone(places);
    return this.#search({ error, part: places }, errors.length === 0 ? rest : [], errors.length === 0 ? [] : rest);
  }

  /**
   * A failure is an item's fault if other requests, or another item of the batch, get through. If everything fails, it is the
   * service's.
   */
  async #findFailure(error: unknown, places: readonly number[]): Promise<void> {
    const { limit, health, once, random, clock } = this.#how;
    const runs = runsPerLevel * Math.ceil(Math.log2(places.length));
    let rest = places;
    const failed: Lone[] = [];
    if (limit.passes > this.#passedBefore) return this.#search({ error, part: places }, rest, [], runs);
    for (let at = 0; at < loneTries && limit.passes === this.#passedBefore; at++) {
      if (at > 0) await wait(backOffMs(at, random()), this.#handle, clock);
      if (!health.budget.spend()) continue;
      const place = rest[Math.floor(random() * rest.length)]!;
      const failure = await this.#send([place], once);
      if (failure !== undefined) failed.push({ place, error: failure });
      rest = rest.filter((each) => each !== place);
    }
    if (limit.passes === this.#passedBefore) throw error;
    for (const lone of failed) this.#fail(lone.place, lone.error);
    return this.#search({ error, part: places }, [], rest, runs);
  }

  /**
   * Binary splitting (Hwang 1972): if a part of the suspects passes, the fault is in the others, so one bad item among n costs about
   * log2 n runs. `pool` holds items that may be fine; they go together at the end.
   * @param refused The last part that was refused as a whole; the suspects are those of its items that have not passed.
   * @param runsLeft Bounds the runs if the service fails.
   */
  async #search(
    refused: { readonly error: unknown; readonly part: readonly number[] },
    suspects: readonly number[] = refused.part,
    pool: readonly number[] = [],
    runsLeft: number = Infinity,
  ): Promise<void> {
    const { limit, once, patiently } = this.#how;
    const isFailure = runsLeft < Infinity;
    /** Most items of the refused part that passed in one request. */
    let most = nothing;
    let named = 0;
    const refuses = async (part: readonly number[], run = isFailure ? once : patiently): Promise<boolean> => {
      if (runsLeft-- <= 0) throw refused.error;
      const error = await this.#send(part, run);
      if (error === undefined) most = larger(most, this.#sizeOf(part));
      else {
        [refused, suspects, most] = [{ error, part }, part, nothing];
      }
      return error !== undefined;
    };
    while (suspects.length > 0 || pool.length > 0) {
      if (suspects.length === 0) {
        const all = pool;
        pool = [];
        if (!(await refuses(all))) return;
      }
      const { part } = refused;
      const culprit = suspects.length === 1 ? suspects[0]! : this.#named(refused, suspects);
      if (culprit !== undefined) {
        const isSure = part.length === 1 || suspects.length > 1;
        if (!isSure && !(await refuses([culprit], patiently))) {
          // All of its items have passed in smaller parts.
          if (!isFailure) return this.#tooLarge(refused, most, pool);
        } else {
          this.#fail(culprit, refused.error);
          pool = [...suspects.filter((place) => place !== culprit), ...pool];
          // A named item was not sent alone, and there may be many more.
          if (suspects.length > 1) named++;
          const lone = suspects.length === 1 ? [{ place: culprit, error: refused.error }] : [];
          const isDue = lone.length > 0 || named % sameErrors === 0;
          if (!isFailure && isDue && limit.passes === this.#passedBefore) pool = (await this.#tryLone(pool, lone)).rest;
        }
        suspects = [];
        continue;
      }
      const isPlausible = !isFailure && (this.#isTry || limit.sizes.mayBeTooLarge(this.#sizeOf(part)));
      const parts = this.#partsOf(refused, suspects, isPlausible);
      const last = parts.length - 1;
      let at = 0;
      while (at < (isPlausible ? parts.length : last) && !(await refuses(parts[at]!))) at++;
      if (at > last) return this.#tooLarge(refused, most, pool);
      suspects = parts[at]!;
      pool = [...parts.slice(at + 1).flat(), ...pool];
    }
  }

  /** Halves the part, or cuts it at the number in the refusal's message if that gives only a few parts. */
  #partsOf(
    { error, part }: { readonly error: unknown; readonly part: readonly number[] },
    suspects: readonly number[],
    isPlausible: boolean,
  ): (readonly number[])[] {
    const size = this.#sizeOf(part);
    const { dimension = "items", most: named, counted } = (isPlausible && namedLimitOf(error, size)) || {};
    if (named !== undefined) {
      const { sizes } = this.#how.limit;
      const inEstimates = counted === undefined ? named : (named * size.tokens) / counted;
      const most = Math.max(inEstimates, sizes.isLimited ? sizes.passing[dimension] : 0);
      // The number may be wrong or mean something else, so one part of the first request cut by it is made larger.
      const mostOf = (part: number): number => (part === 1 && !sizes.isLimited ? 2 * most : most);
      const parts: number[][] = [];
      let sum = Infinity;
      for (const place of suspects) {
        const amount = this.#sizeOf([place])[dimension];
        if (sum + amount <= mostOf(parts.length - 1)) parts.at(-1)!.push(place);
        else parts.push([place]);
        sum = parts.at(-1)!.length === 1 ? amount : sum + amount;
      }
      if (parts.length > 1 && parts.length <= mostParts) return parts;
    }
    const middle = Math.ceil(suspects.length / 2);
    return [suspects.slice(0, middle), suspects.slice(middle)];
  }

  /**
   * Tries single items with different texts, from the beginning, the end and the middle, until one passes. Throws if none does and
   * all get the same error, which is then not theirs.
   */
  async #tryLone(
    places: readonly number[],
    failed: readonly Lone[] = [],
  ): Promise<{ readonly rest: readonly number[]; readonly errors: readonly Lone[] }> {
    const { textOf, limit, patiently } = this.#how;
    const errors = [...failed];
    const isNew = (place: number): boolean =>
      errors.every((lone) => textOf(this.#items[lone.place]!) !== textOf(this.#items[place]!));
    let rest = places;
    for (const at of [1, 0, 0.5]) {
      const place = rest[Math.min(rest.length - 1, Math.floor(at * rest.length))];
      if (place === undefined || errors.length === sameErrors) break;
      if (!isNew(place)) continue;
      rest = rest.filter((each) => each !== place);
      const error = await this.#send([place], patiently);
      if (error === undefined) return { rest, errors };
      this.#fail(place, error);
      errors.push({ place, error });
    }
    const areTheSame = new Set(errors.map(({ error }) => signatureOf(error))).size === 1;
    if (errors.length === sameErrors && areTheSame && limit.passes === this.#passedBefore) throw errors[0]!.error;
    return { rest, errors };
  }

  #named(
    { error, part }: { readonly error: unknown; readonly part: readonly number[] },
    suspects: readonly number[],
  ): number | undefined {
    const { itemIndex } = errorHints(error);
    const place = itemIndex === undefined ? undefined : part[itemIndex];
    return place !== undefined && suspects.includes(place) ? place : undefined;
  }

  #tooLarge(
    { error, part }: { readonly error: unknown; readonly part: readonly number[] },
    most: RequestSize,
    rest: readonly number[],
  ): void {
    const size = this.#sizeOf(part);
    this.#how.limit.sizes.refused(size, most, namedLimitOf(error, size));
    if (rest.length > 0) this.#putBack(error);
  }

  /** Sends a part; if it passes, its items get their results. @returns an error that may be the fault of an item or of the size. */
  async #send(part: readonly number[], run: BatchFunction<In, Out>, isFirst: boolean = false): Promise<unknown> {
    const { clock, limit, health, once, name } = this.#how;
    const size = this.#sizeOf(part);
    if (!isFirst) {
      // Another batch has meanwhile taught the limit.
      if (!this.#isTry && part.length > 1 && limit.sizes.exceeds(size)) this.#putBack(new Error(`${name}: the service accepts less in one request.`)); // prettier-ignore
      for (let nowMs = clock.now(), atMs; (atMs = limit.partReadyAtMs(nowMs, part.length, size.tokens)) > nowMs; nowMs = clock.now()) await wait(atMs - nowMs, this.#handle, clock); // prettier-ignore
      this.#handle.countRun(part.length);
    }
    this.#handle.reportWeight(size.tokens);
    const handle = this.#handle.part(part);
    try {
      const items = part.map((place) => this.#items[place]!);
      const results = checkResults(await run(items, handle), items.length, name);
      if (run === once) health.succeeded(clock.now());
      for (const [i, place] of part.entries()) this.#handle.answer(place, results[i]);
      return undefined;
    } catch (error) {
      if (this.#handle.signal.aborted || this.#how.blameOf(error) === "none") throw withHints(error);
      return error;
    } finally {
      handle.end();
    }
  }

  #fail(place: number, error: unknown): void {
    this.#handle.answer(place, error instanceof Error ? error : new Error(String(error), { cause: error }));
  }

  #putBack(error: unknown): never {
    this.#handle.putBack();
    throw error;
  }

  #sizeOf(part: readonly number[]): RequestSize {
    return this.#how.sizeOf(part.map((place) => this.#items[place]!));
  }
}

interface Lone {
  readonly place: number;
  readonly error: unknown;
}

const nothing: RequestSize = { items: 0, tokens: 0, bytes: 0 };

const larger = (a: RequestSize, b: RequestSize): RequestSize => ({
  items: Math.max(a.items, b.items),
  tokens: Math.max(a.tokens, b.tokens),
  bytes: Math.max(a.bytes, b.bytes),
});
