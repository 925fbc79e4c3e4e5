import type { Clock } from "../../core/runtime/runtime.ts";
import { newAbortController } from "../../core/runtime/signals.ts";
import { BatcherError } from "../../core/contract/errors.ts";
import { checkCount, checkOptions } from "../../shared/checks.ts";
import { notNegative, positive, share, spanMs } from "./checks.ts";
import { Random } from "./random.ts";

/** Clients that give up when they have waited long enough, and try again. */
export interface Retries {
  /** How long a client waits for an answer before it gives up, in milliseconds: for all of them, or drawn between two. */
  readonly patienceMs: number | readonly [number, number];
  /**
   * Attempts of a client, the first included; integer >= 1.
   * @default 3, as openai's clients
   */
  readonly attempts?: number | undefined;
  /**
   * The pause before the first retry, doubled for each further one up to `maxMs`, less a random share of up to
   * `jitter`.
   * @default 500 ms, 8000 ms and 0.25, as openai's clients
   */
  readonly backOff?: { readonly baseMs: number; readonly maxMs: number; readonly jitter: number } | undefined;
  /**
   * Whether a refused client waits as long as the refusal asks (`drainMs`, `retryAfterMs`) instead.
   * @default false
   */
  readonly obeyRetryAfter?: boolean | undefined;
  /**
   * Whether the batcher sees a client leave: its call is aborted.
   * @default true
   */
  readonly seen?: boolean | undefined;
}

/** openai's clients ignore a longer request to wait. */
const longestRetryAfterMs = 60_000;
/** The failure of an attempt whose client left. */
export const gaveUp: unique symbol = Symbol("gave up");

/** Makes each call of a simulation or a load test an operation of a client with patience. */
export class Clients {
  /** Attempts so far, of all operations. */
  attempts = 0;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #retries: Retries;
  readonly #patience: readonly [number, number];

  /** @throws {TypeError | RangeError} for retries that make no sense. */
  constructor(retries: Retries, clock: Clock, seed: number) {
    checkOptions(
      retries,
      {
        patienceMs: (name, value) => [value].flat().forEach((ms) => positive(name, ms)),
        attempts: checkCount,
        backOff: (name, value) => checkOptions(value, { baseMs: spanMs, maxMs: notNegative, jitter: share }, name),
        obeyRetryAfter: () => undefined,
        seen: () => undefined,
      },
      "retries",
    );
    this.#retries = retries;
    this.#clock = clock;
    this.#random = new Random(seed);
    const { patienceMs } = retries;
    this.#patience = typeof patienceMs === "number" ? [patienceMs, patienceMs] : patienceMs;
  }

  /** The longest possible operation: every attempt uses up the patience, and every pause is the longest. */
  get longestMs(): number {
    const { attempts = defaultAttempts, backOff = openaiBackOff, obeyRetryAfter = false } = this.#retries;
    let totalMs = attempts * this.#patience[1];
    for (let attempt = 1; attempt < attempts; attempt++)
      totalMs += Math.max(obeyRetryAfter ? longestRetryAfterMs : 0, backOffMs(backOff, attempt));
    return totalMs;
  }

  /** One operation; rejects with the error of its last attempt. Resolves with the latency of the attempt that succeeded. */
  async operate(call: (signal: AbortSignal | undefined) => Promise<unknown>): Promise<number> {
    const { attempts = defaultAttempts, backOff = openaiBackOff, obeyRetryAfter = false } = this.#retries;
    const [least, most] = this.#patience;
    const patienceMs = least + (most - least) * this.#random.uniform();
    for (let attempt = 1; ; attempt++) {
      const beganAtMs = this.#clock.now();
      const failure = await this.#attempt(call, patienceMs);
      if (failure === undefined) return this.#clock.now() - beganAtMs;
      if (attempt >= attempts) throw failure.error;
      const jittered = backOffMs(backOff, attempt) * (1 - backOff.jitter * this.#random.uniform());
      const askedMs = retryAfterMsOf(failure.error);
      const obeyed = obeyRetryAfter && askedMs !== undefined && askedMs < longestRetryAfterMs;
      await new Promise<void>((resolve) => void this.#clock.after(obeyed ? askedMs : jittered, resolve));
    }
  }

  #attempt(
    call: (signal: AbortSignal | undefined) => Promise<unknown>,
    patienceMs: number,
  ): Promise<{ readonly error: unknown } | undefined> {
    this.attempts++;
    return new Promise((resolve) => {
      const controller = this.#retries.seen === false ? undefined : newAbortController();
      const cancel = this.#clock.after(patienceMs, () => {
        resolve({ error: gaveUp });
        controller?.abort(gaveUp);
      });
      call(controller?.signal).then(
        () => {
          cancel();
          resolve(undefined);
        },
        (error: unknown) => {
          cancel();
          resolve({ error });
        },
      );
    });
  }
}

/** How long a refusal asks its client to wait. */
function retryAfterMsOf(error: unknown): number | undefined {
  const { retryAfterMs } = (error ?? {}) as { readonly retryAfterMs?: unknown };
  const asked = error instanceof BatcherError ? error.details["drainMs"] : retryAfterMs;
  return typeof asked === "number" && asked > 0 ? asked : undefined;
}

type BackOff = NonNullable<Retries["backOff"]>;

const backOffMs = ({ baseMs, maxMs }: BackOff, attempt: number): number => Math.min(maxMs, baseMs * 2 ** (attempt - 1));

const defaultAttempts = 3;
const openaiBackOff: BackOff = { baseMs: 500, maxMs: 8000, jitter: 0.25 };
