import fc from "fast-check";

/** What a policy of a scenario is. "hostile" answers at random, nonsense and throws included. */
export type PolicyName = "greedy" | "window" | "window-time" | "window-size" | "auto" | "adaptive" | "hold" | "hostile";

/** One thing that callers do, `afterMs` after the one before. */
export type Action = { readonly afterMs: number } & (
  | { readonly kind: "calls" | "many" | "settle"; readonly count: number; readonly terms: ActionTerms }
  | { readonly kind: "map"; readonly count: number; readonly take: number; readonly terms: ActionTerms }
  | { readonly kind: "abort"; readonly controller: number }
  | { readonly kind: "flush" | "drain" }
);

export interface ActionTerms {
  readonly priority: "immediate" | "interactive" | "bulk";
  readonly timeoutMs: number | undefined;
  readonly alone: boolean;
  /** Calls go through `detailed`, `settle` through `settleDetailed`. */
  readonly asks: boolean;
  /** Index of the controller whose signal is given. */
  readonly controller: number | undefined;
}

/** Everything that decides a simulation. `seed` draws the items and what the batch function does. */
export interface Scenario {
  readonly seed: number;
  readonly policy: PolicyName;
  readonly maxBatchSize: number;
  readonly maxWaitMs: number | undefined;
  readonly concurrency: number;
  readonly maxQueueSize: number;
  readonly onQueueFull: "reject" | "wait";
  readonly weights: "none" | "sum" | "padded" | "apart";
  /** Whether batches have a weight to keep to. */
  readonly hasBatchWeight: boolean;
  readonly maxItemWeight: number | undefined;
  readonly groups: number;
  readonly tenants: number;
  /** Whether tenants have different shares. */
  readonly hasShares: boolean;
  readonly orders: number;
  readonly equals: number;
  /** Equal calls also join a run; only without orders. */
  readonly joinsRuns: boolean;
  /** Results by key; undefined: by position. */
  readonly keyed: "undefined" | "error" | undefined;
  readonly throwingKeys: boolean;
  readonly timeoutMs: number | undefined;
  readonly refuseLate: number | undefined;
  readonly runTimeoutMs: number | undefined;
  readonly onBatchError: "fail" | "bisect";
  readonly runOne: boolean;
  readonly maxBisectRuns: number | undefined;
  readonly rateLimit: { readonly runs?: number; readonly items?: number; readonly perMs: number } | undefined;
  readonly run: {
    readonly fixedMs: number;
    readonly perItemMs: number;
    /** From which the batcher learns to choose items that go together. */
    readonly perWeightMs: number;
    /** Shares of 0…1: bad items, failing runs, runs that never heed their end, failures that ask for a pause, and that put their items back. */
    readonly badItemRate: number;
    readonly failureRate: number;
    readonly hangRate: number;
    readonly pauseRate: number;
    readonly putBackRate: number;
    readonly slotErrorRate: number;
    readonly shortRate: number;
    /** Items that are answered before their run has ended, or too late. */
    readonly answerRate: number;
    /** Ends soon after its signal aborts. */
    readonly heedsSignal: boolean;
  };
  /** Share of the callbacks (batch function, keys, weigh, subscriber, abort listener, policy, clock) that call the batcher again. */
  readonly reenterRate: number;
  readonly actions: readonly Action[];
  /** Calls at every millisecond, whose callers leave when their patience ends and try once more. */
  readonly storm:
    | { readonly afterAction: number; readonly perMs: number; readonly forMs: number; readonly patienceMs: number }
    | undefined;
  readonly overloadOrder: "newest" | "arrival" | undefined;
  readonly close: { readonly afterAction: number; readonly graceMs: number | undefined } | undefined;
}

const often = <T>(value: T, rest: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(value) }, { weight: 2, arbitrary: rest });

const terms: fc.Arbitrary<ActionTerms> = fc.record({
  priority: often<ActionTerms["priority"]>("interactive", fc.constantFrom("immediate", "bulk")),
  timeoutMs: often<number | undefined>(undefined, fc.integer({ min: 1, max: 80 })),
  controller: often<number | undefined>(undefined, fc.integer({ min: 0, max: 2 })),
  alone: fc.oneof({ weight: 6, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  asks: fc.boolean(),
});

const afterMs = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 12 }), fc.integer({ min: 0, max: 60 }));

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      afterMs,
      kind: fc.constant("calls" as const),
      count: fc.integer({ min: 1, max: 8 }),
      terms,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      afterMs,
      kind: fc.constantFrom("many" as const, "settle" as const),
      count: fc.integer({ min: 0, max: 30 }),
      terms,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      afterMs,
      kind: fc.constant("map" as const),
      count: fc.integer({ min: 0, max: 20 }),
      take: fc.oneof(fc.constant(1_000), fc.integer({ min: 0, max: 10 })),
      terms,
    }),
  },
  { weight: 2, arbitrary: fc.record({ afterMs, kind: fc.constant("abort" as const), controller: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ afterMs, kind: fc.constantFrom("flush" as const, "drain" as const) }) },
);

// Hundredths: fast-check's doubles are nearly all too small to happen.
const share = (most: number): fc.Arbitrary<number> =>
  often(
    0,
    fc.integer({ min: 1, max: 100 }).map((hundredths) => (hundredths / 100) * most),
  );

export const scenarios: fc.Arbitrary<Scenario> = fc
  .record({
    seed: fc.integer({ min: 1, max: 2 ** 31 - 2 }),
    policy: fc.constantFrom<PolicyName>(
      "greedy",
      "window",
      "window-time",
      "window-size",
      "auto",
      "adaptive",
      "hold",
      "hostile",
    ),
    maxBatchSize: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constant(Infinity)),
    maxWaitMs: fc.option(fc.integer({ min: 0, max: 30 }), { nil: undefined }),
    concurrency: fc.integer({ min: 1, max: 4 }),
    maxQueueSize: fc.oneof(fc.constant(Infinity), fc.integer({ min: 1, max: 24 })),
    onQueueFull: fc.constantFrom("reject" as const, "wait" as const),
    weights: often<Scenario["weights"]>("none", fc.constantFrom("sum", "padded", "apart")),
    hasBatchWeight: fc.boolean(),
    maxItemWeight: often<number | undefined>(undefined, fc.integer({ min: 5, max: 50 })),
    groups: often(0, fc.integer({ min: 1, max: 4 })),
    tenants: often(0, fc.integer({ min: 1, max: 5 })),
    hasShares: fc.boolean(),
    orders: often(0, fc.integer({ min: 1, max: 6 })),
    equals: often(0, fc.integer({ min: 1, max: 12 })),
    joinsRuns: fc.boolean(),
    keyed: often<Scenario["keyed"]>(undefined, fc.constantFrom("undefined", "error")),
    throwingKeys: often(false, fc.boolean()),
    timeoutMs: often<number | undefined>(undefined, fc.integer({ min: 1, max: 120 })),
    refuseLate: often<number | undefined>(undefined, fc.constantFrom(0.5, 0.85, 1)),
    runTimeoutMs: often<number | undefined>(undefined, fc.integer({ min: 1, max: 60 })),
    onBatchError: fc.constantFrom("fail" as const, "bisect" as const),
    runOne: fc.boolean(),
    maxBisectRuns: often<number | undefined>(undefined, fc.integer({ min: 0, max: 12 })),
    rateLimit: often<Scenario["rateLimit"]>(
      undefined,
      fc.oneof(
        fc.record({ runs: fc.integer({ min: 1, max: 6 }), perMs: fc.integer({ min: 5, max: 60 }) }),
        fc.record({ items: fc.integer({ min: 1, max: 30 }), perMs: fc.integer({ min: 5, max: 60 }) }),
      ),
    ),
    run: fc.record({
      fixedMs: fc.integer({ min: 0, max: 20 }),
      perItemMs: fc.integer({ min: 0, max: 3 }),
      perWeightMs: fc.constantFrom(0, 0, 0.25, 1),
      badItemRate: share(0.4),
      failureRate: share(0.4),
      hangRate: share(0.2),
      pauseRate: share(1),
      putBackRate: share(1),
      slotErrorRate: share(0.3),
      shortRate: share(0.2),
      answerRate: share(1),
      heedsSignal: fc.boolean(),
    }),
    reenterRate: share(0.5),
    actions: fc.array(action, { minLength: 1, maxLength: 30 }),
    storm: fc.oneof(
      { weight: 9, arbitrary: fc.constant(undefined) },
      {
        weight: 1,
        arbitrary: fc.record({
          afterAction: fc.nat(10),
          perMs: fc.integer({ min: 1, max: 6 }),
          forMs: fc.integer({ min: 50, max: 250 }),
          patienceMs: fc.integer({ min: 20, max: 150 }),
        }),
      },
    ),
    overloadOrder: often<Scenario["overloadOrder"]>(undefined, fc.constantFrom("newest", "arrival")),
    close: often<Scenario["close"]>(
      undefined,
      fc.record({
        afterAction: fc.nat(30),
        graceMs: fc.option(fc.integer({ min: 0, max: 60 }), { nil: undefined }),
      }),
    ),
  })
  .map((scenario) => ({
    ...scenario,
    // The two windows that need a length get one.
    maxWaitMs:
      scenario.policy === "window" || scenario.policy === "window-time"
        ? (scenario.maxWaitMs ?? 10)
        : scenario.maxWaitMs,
  }));
