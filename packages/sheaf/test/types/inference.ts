/** Held by the compiler: a wrong type here fails the build of the tests. Nothing in this file runs. */
import { expectTypeOf } from "expect-type";
import {
  type DetailedResult,
  type BatchContext,
  type BatchFunction,
  type BatchRecord,
  type Batcher,
  type BatcherOptions,
  type BatcherStats,
  type CallOptions,
  consume,
  createBatcher,
  type Executor,
} from "../../dist/index.js";
import type { BatcherPending } from "../../dist/core/contract/batcher.js";
import type { RunHandle } from "../../dist/executors.js";

const held = (_promise: string, _types: () => void): void => {};

class MyError extends Error {
  readonly retry: boolean = true;
}

held("the types of items and results are inferred from the function", () => {
  const embed = createBatcher(async (texts: string[]) => texts.map((text) => [text.length]));
  expectTypeOf(embed).toEqualTypeOf<Batcher<string, number[]>>();
  expectTypeOf(embed("a")).toEqualTypeOf<Promise<number[]>>();
  expectTypeOf(embed).parameter(0).toEqualTypeOf<string>();
});

held("sync, async, typed and array-like results are inferred", () => {
  expectTypeOf(createBatcher((items: number[]) => items)).toEqualTypeOf<Batcher<number, number>>();
  expectTypeOf(createBatcher((_: string[]) => new Float32Array(1))).toEqualTypeOf<Batcher<string, number>>();
  const arrayLike = (_: string[]): ArrayLike<boolean> => [];
  expectTypeOf(createBatcher(arrayLike)).toEqualTypeOf<Batcher<string, boolean>>();
  const readonly = async (_: string[]): Promise<readonly Date[]> => [];
  expectTypeOf(createBatcher(readonly)).toEqualTypeOf<Batcher<string, Date>>();
});

held("the second parameter of the function is the context", () => {
  createBatcher(async (items: string[], context) => {
    expectTypeOf(context).toEqualTypeOf<BatchContext>();
    expectTypeOf(context.signal).toEqualTypeOf<AbortSignal>();
    return items;
  });
  createBatcher(async (items: string[], { signal, batchId, size, attempt }) => {
    expectTypeOf(batchId).toEqualTypeOf<number>();
    expectTypeOf(size).toEqualTypeOf<number>();
    expectTypeOf(attempt).toEqualTypeOf<number>();
    const init: RequestInit = { signal };
    return items.map(() => init);
  });
});

held("a function that answers all may return nothing where the types are given, and nowhere else", () => {
  const upper = createBatcher<string, string>(async (texts, { answer }) => {
    expectTypeOf(answer).toEqualTypeOf<(index: number, result: unknown) => void>();
    for (const [index, text] of texts.entries()) answer(index, text.toUpperCase());
  });
  expectTypeOf(upper).toEqualTypeOf<Batcher<string, string>>();
  // @ts-expect-error: a forgotten return is an error
  createBatcher(async (texts: string[]) => {
    for (const text of texts) void text;
  });
});

held("Promise.all(texts.map(embed)) compiles and keeps the result type", () => {
  const embed = createBatcher(async (texts: string[]) => texts.map((text) => text.length));
  const all = Promise.all(["a", "b"].map(embed));
  expectTypeOf(all).toEqualTypeOf<Promise<number[]>>();
});

held("promises are no results: they are refused", () => {
  const each = createBatcher((texts: string[]) => texts.map(async (text) => text.length));
  expectTypeOf(each("a")).toEqualTypeOf<Promise<never>>();
  expectTypeOf(createBatcher((_: string[]): any[] => [])("a")).toEqualTypeOf<Promise<any>>();
});

held("a Map of results makes the result possibly undefined, unless a missing one is an error", () => {
  const rows = (_: number[]): Map<number, Date> => new Map();
  expectTypeOf(createBatcher(rows)).toEqualTypeOf<Batcher<number, Date | undefined>>();
  expectTypeOf(createBatcher(async (_: number[]) => rows([]))(1)).toEqualTypeOf<Promise<Date | undefined>>();
  expectTypeOf(createBatcher(rows, { onMissing: "undefined" })(1)).toEqualTypeOf<Promise<Date | undefined>>();
  expectTypeOf(createBatcher(rows, { onMissing: "error" })).toEqualTypeOf<Batcher<number, Date>>();
  const failing = async (_: string[]): Promise<ReadonlyMap<string, Date | MyError>> => new Map();
  expectTypeOf(createBatcher(failing)).toEqualTypeOf<Batcher<string, Date | undefined>>();
  expectTypeOf(createBatcher(failing, { onMissing: "error" })).toEqualTypeOf<Batcher<string, Date>>();
  createBatcher(rows, {
    resultKey: (id) => {
      expectTypeOf(id).toEqualTypeOf<number>();
      return id;
    },
  });
  const named: Batcher<string, Date | undefined> = createBatcher<string, Date | undefined>(
    () => new Map<string, Date>(),
  );
  expectTypeOf(named("a")).toEqualTypeOf<Promise<Date | undefined>>();
});

held("detailed gives the result with its batch and times; pending is two numbers", () => {
  const embed = createBatcher(async (texts: string[]): Promise<(number | MyError)[]> => texts.map(Number));
  expectTypeOf(embed.detailed("a", { alone: true })).toEqualTypeOf<Promise<DetailedResult<number>>>();
  expectTypeOf<DetailedResult<number>["value"]>().toEqualTypeOf<number>();
  expectTypeOf(embed.settleDetailed(["a"])).toEqualTypeOf<Promise<PromiseSettledResult<DetailedResult<number>>[]>>();
  expectTypeOf(embed.pending).toEqualTypeOf<BatcherPending>();
  // @ts-expect-error: a boolean
  void embed("a", { alone: "yes" });
});

held("an executor gets a RunHandle, which is all that a batch function sees and more", () => {
  expectTypeOf<Parameters<Executor<string, number>["run"]>[1]>().toEqualTypeOf<RunHandle>();
  expectTypeOf<RunHandle>().toExtend<BatchContext>();
  createBatcher((items: string[], context) => {
    // @ts-expect-error: an executor's
    context.measured(1);
    return items;
  });
});

held("Error and its subclasses drop out of the result, in unions too", () => {
  const run = async (texts: string[]): Promise<(string | MyError)[]> => texts;
  expectTypeOf(createBatcher(run)).toEqualTypeOf<Batcher<string, string>>();
  const mixed = (texts: string[]): (string | Error | TypeError)[] => texts;
  expectTypeOf(createBatcher(mixed)("a")).toEqualTypeOf<Promise<string>>();
  const mapped = createBatcher(async (ids: number[]) => ids.map((id) => (id > 0 ? { id } : new MyError("no such id"))));
  expectTypeOf(mapped(1)).toEqualTypeOf<Promise<{ id: number }>>();
});

held("plain { name, message } objects are results and survive", () => {
  interface Notice {
    name: string;
    message: string;
  }
  const notices = createBatcher(async (ids: number[]): Promise<Notice[]> =>
    ids.map(() => ({ name: "n", message: "m" })),
  );
  expectTypeOf(notices(1)).toEqualTypeOf<Promise<Notice>>();
  const mixed = createBatcher((ids: number[]): (Notice | MyError)[] => ids.map(() => new MyError("x")));
  expectTypeOf(mixed(1)).toEqualTypeOf<Promise<Notice>>();
});

held("any, unknown, undefined, null and unions stay what they are", () => {
  expectTypeOf(createBatcher((items: string[]): unknown[] => items)("a")).toEqualTypeOf<Promise<unknown>>();
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- a user's any must not become never.
  expectTypeOf(createBatcher((items: string[]): any[] => items)("a")).toEqualTypeOf<Promise<any>>();
  expectTypeOf(createBatcher((_: string[]): (number | undefined)[] => [])("a")).toEqualTypeOf<
    Promise<number | undefined>
  >();
  expectTypeOf(createBatcher((_: string[]): (Date | null)[] => [])("a")).toEqualTypeOf<Promise<Date | null>>();
  expectTypeOf(createBatcher(async (_: string[]): Promise<void[]> => [])("a")).toEqualTypeOf<Promise<void>>();
});

held("an executor is inferred as a function is", () => {
  const executor = {} as Executor<string, number[] | MyError>;
  expectTypeOf<typeof createBatcher<string, number[] | MyError>>()
    .parameter(0)
    .toExtend<BatchFunction<string, number[] | MyError> | Executor<string, number[] | MyError>>();
  const make = (): Batcher<string, number[]> => createBatcher(executor);
  expectTypeOf(make).returns.toEqualTypeOf<Batcher<string, number[]>>();
});

held("many, settle and map carry the result type", () => {
  const embed = createBatcher(async (texts: string[]) =>
    texts.map((text) => (text === "" ? new MyError("empty") : text.length)),
  );
  expectTypeOf(embed.many).parameter(0).toEqualTypeOf<Iterable<string> & object>();
  expectTypeOf(embed.many(["a"])).toEqualTypeOf<Promise<number[]>>();
  expectTypeOf(embed.settle(new Set(["a"]))).toEqualTypeOf<Promise<PromiseSettledResult<number>[]>>();
  expectTypeOf(embed.map(["a"])).toExtend<AsyncIterable<number>>();
  async function* source(): AsyncGenerator<string> {
    yield "a";
  }
  expectTypeOf(embed.map(source())).toExtend<AsyncIterable<number>>();
  // @ts-expect-error -- items of another type are refused
  void (() => embed.many([1]));
  // @ts-expect-error -- a text is no list of its characters
  void (() => embed.many("hello"));
  // @ts-expect-error -- nor to settle or map
  void (() => [embed.settle("hello"), embed.map("hello")]);
  // @ts-expect-error -- and so is one item of another type
  void (() => embed(1));
});

held("the item type reaches the option functions", () => {
  createBatcher(async (users: { id: string; tokens: number }[]) => users.map(({ id }) => id), {
    weigh: (user) => {
      expectTypeOf(user).toEqualTypeOf<{ id: string; tokens: number }>();
      return user.tokens;
    },
    groupKey: ({ id }) => id,
    orderKey: ({ id }) => id,
    dedupeKey: ({ id }) => id,
    maxBatchWeight: 10,
    onBatchError: "bisect",
    runOne: (user) => user.id,
    shouldBisect: (error) => {
      expectTypeOf(error).toEqualTypeOf<unknown>();
      return true;
    },
  });
});

held("users of exactOptionalPropertyTypes may pass undefined for every option", () => {
  type Every<T> = { [Key in keyof T]-?: undefined extends T[Key] ? true : Key };
  expectTypeOf<Every<BatcherOptions<string, string>>[keyof BatcherOptions<string, string>]>().toEqualTypeOf<true>();
  const fromEnvironment = (text: string | undefined): number | undefined =>
    text === undefined ? undefined : Number(text);
  const options: BatcherOptions<string, string> = {
    maxBatchSize: fromEnvironment("32"),
    maxWaitMs: fromEnvironment(undefined),
    policy: undefined,
  };
  createBatcher((items: string[]) => items, options);
  const call: CallOptions = { signal: undefined, timeoutMs: fromEnvironment(undefined), priority: undefined };
  expectTypeOf<Every<CallOptions>[keyof CallOptions]>().toEqualTypeOf<true>();
  expectTypeOf(call).toEqualTypeOf<CallOptions>();
  const rate: BatcherOptions<string>["rateLimit"] = { runs: fromEnvironment(undefined), items: 5, perMs: 1_000 };
  expectTypeOf(rate).toExtend<BatcherOptions<string>["rateLimit"]>();
});

held("the literals of the contract are the only ones", () => {
  expectTypeOf<NonNullable<CallOptions["priority"]>>().toEqualTypeOf<"immediate" | "interactive" | "bulk">();
  expectTypeOf<NonNullable<BatcherOptions<string>["onQueueFull"]>>().toEqualTypeOf<"reject" | "wait">();
  expectTypeOf<NonNullable<BatcherOptions<string>["overloadOrder"]>>().toEqualTypeOf<"newest" | "arrival">();
  expectTypeOf<NonNullable<BatcherOptions<string>["onBatchError"]>>().toEqualTypeOf<"fail" | "bisect">();
  expectTypeOf<NonNullable<BatcherOptions<string>["batchWeight"]>>().toEqualTypeOf<"sum" | "padded" | "apart">();
  expectTypeOf<NonNullable<BatcherOptions<string>["maxQueueSize"]>>().toEqualTypeOf<number | "auto">();
});

held("methods, statistics and subscriptions are typed", () => {
  const batcher = createBatcher((items: string[]) => items);
  expectTypeOf(batcher.flush()).toEqualTypeOf<Promise<void>>();
  expectTypeOf(batcher.drain()).toEqualTypeOf<Promise<void>>();
  expectTypeOf(batcher.close({ graceMs: 5 })).toEqualTypeOf<Promise<void>>();
  expectTypeOf(batcher.ready()).toEqualTypeOf<Promise<void>>();
  expectTypeOf(batcher.stats()).toEqualTypeOf<BatcherStats>();
  expectTypeOf(batcher.name).toEqualTypeOf<string>();
  const unsubscribe = batcher.subscribe((record) => expectTypeOf(record).toEqualTypeOf<BatchRecord>());
  expectTypeOf(unsubscribe).toEqualTypeOf<() => void>();
  expectTypeOf(batcher[Symbol.asyncDispose]()).toEqualTypeOf<Promise<void>>();
  expectTypeOf<typeof batcher>().toExtend<AsyncDisposable>();
});

held("a batcher can be named with its types", () => {
  const embed: Batcher<string, Float32Array> = createBatcher(async (texts: string[]) =>
    texts.map(() => new Float32Array(3)),
  );
  expectTypeOf(embed("a")).toEqualTypeOf<Promise<Float32Array>>();
});

held("consume infers message and result; a call gets the signal to pass on", () => {
  interface Message {
    readonly body: string;
  }
  const messages = {} as AsyncIterable<Message>;
  const embed = createBatcher(async (texts: string[]) => texts.map((text) => [text.length]));
  const options = {
    nack: (message: Message, error: unknown) => void [message, error],
    ack: (message: Message, vector: number[]) => void [message, vector],
  };
  expectTypeOf(consume(messages, ({ body }, { signal }) => embed(body, { signal }), options)).toEqualTypeOf<
    Promise<void>
  >();
  const whole = createBatcher(async (all: Message[]) => all.map(({ body }) => body.length));
  void consume(async (room) => new Array<Message>(room), whole, {
    nack: () => undefined,
    ack: (message, length) => {
      expectTypeOf(message).toEqualTypeOf<Message>();
      expectTypeOf(length).toEqualTypeOf<number>();
    },
  });
  // @ts-expect-error a batcher of texts takes no messages
  void consume(messages, embed, { ack: () => undefined, nack: () => undefined });
  // @ts-expect-error a message that failed needs an answer
  void consume(messages, whole, { ack: () => undefined });
});
