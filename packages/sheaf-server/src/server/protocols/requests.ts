import { excessOf, isTruncated } from "../codec/outputs.ts";
import { inferLongList } from "./long-list.ts";
import { runAs, type Load } from "../../tenants/caller.ts";
import type { Served } from "../../cache/served.ts";
import type { InferOptions } from "../../http/call-options.ts";
import type { ServedModel } from "../models/served-model.ts";
import { Problem } from "../../problems/problem.ts";
import { problemFor } from "../../http/replies.ts";

type Settled = PromiseSettledResult<Served>[];

/** A request of one item. @throws {Problem} where it fails. */
export async function inferOne(model: ServedModel, item: unknown, options: InferOptions): Promise<Served> {
  const startedAtMs = performance.now();
  try {
    const served = await runAs(options, loadOf(model, [item]), (asked) => model.infer(item, asked));
    const totalMs = performance.now() - startedAtMs;
    model.statistics.answered({ items: served.batchSize === 0 ? 0 : 1, totalMs, queueMs: served.queueMs });
    if (isRefused(served, model, options)) throw tooLong(served, model);
    return served;
  } catch (error) {
    throw failed(error, model, startedAtMs, options);
  }
}

/** A request of several items, each with an outcome of its own, in order. @throws {Problem} where none is let in. */
export async function inferEach(
  model: ServedModel,
  items: readonly unknown[],
  options: InferOptions,
): Promise<Settled> {
  if (items.length === 0) return [];
  const startedAtMs = performance.now();
  try {
    const run = (asked: InferOptions): Promise<Settled> => model.inferAll(items, asked);
    const outcomes = await runAs(options, loadOf(model, items), run, (all) => all);
    const served = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    answered(model, startedAtMs, served);
    return outcomes.map((outcome) =>
      outcome.status === "fulfilled" && isRefused(outcome.value, model, options)
        ? { status: "rejected", reason: tooLong(outcome.value, model) }
        : outcome,
    );
  } catch (error) {
    throw failed(error, model, startedAtMs, options);
  }
}

/** A request of several items, also more than the queue holds, that fails with the first of them. @throws {Problem} */
export async function inferEvery(
  model: ServedModel,
  items: readonly unknown[],
  options: InferOptions,
): Promise<Served[]> {
  // One item needs none of the bookkeeping of a list.
  if (items.length === 1) return [await inferOne(model, items[0], options)];
  const startedAtMs = performance.now();
  const { queueMaxSize, requestTimeoutMs } = model.settings;
  try {
    const run = (asked: InferOptions): Promise<Settled> =>
      items.length > queueMaxSize
        ? inferLongList(model, items, { ...asked, timeoutMs: asked.timeoutMs ?? requestTimeoutMs })
        : model.inferAll(items, asked);
    const served = (await runAs(options, loadOf(model, items), run, (all) => all)).map(valueOf);
    answered(model, startedAtMs, served);
    const index = served.findIndex((one) => isRefused(one, model, options));
    if (index >= 0) throw tooLong(served[index]!, model, `Input ${index}`);
    return served;
  } catch (error) {
    throw failed(error, model, startedAtMs, options);
  }
}

/** Whether a text was cut that must not be; a caller who says so reads the result itself. */
const isRefused = ({ value }: Served, { settings }: ServedModel, { truncate }: InferOptions): boolean =>
  !settings.autoTruncate && truncate === undefined && isTruncated(value);

const tooLong = ({ value }: Served, { definition: { input } }: ServedModel, what = "The text"): Problem =>
  new Problem("INVALID_INPUT", `${what} ${excessOf(value, input)}, and AUTO_TRUNCATE is false.`);

function loadOf({ definition }: ServedModel, items: readonly unknown[]): Load {
  const weigh = definition.weigh as ((item: unknown) => number) | undefined;
  return {
    items: items.length,
    weight: () => (weigh === undefined ? items.length : items.reduce<number>((sum, item) => sum + weigh(item), 0)),
  };
}

function valueOf(outcome: PromiseSettledResult<Served>, index: number): Served {
  if (outcome.status === "fulfilled") return outcome.value;
  const reason: unknown = outcome.reason;
  // The request has no other place for it.
  if (reason instanceof Problem && reason.code === "MODEL_ERROR")
    throw new Problem("MODEL_ERROR", `Input ${index}: ${reason.message}`);
  throw reason;
}

function answered({ statistics }: ServedModel, startedAtMs: number, served: readonly Served[]): void {
  const queueMs = served.reduce((longest, one) => Math.max(longest, one.queueMs), 0);
  const items = served.filter(({ batchSize }) => batchSize > 0).length;
  statistics.answered({ items, totalMs: performance.now() - startedAtMs, queueMs });
}

function failed(error: unknown, model: ServedModel, startedAtMs: number, { caller }: InferOptions): unknown {
  model.statistics.failed(performance.now() - startedAtMs);
  return problemFor(error, model, caller?.tenant);
}
