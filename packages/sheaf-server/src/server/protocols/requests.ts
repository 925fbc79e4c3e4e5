import type { FastifyRequest, onRequestHookHandler } from "fastify";
import { BatcherError } from "sheaf";
import { callerOf } from "../../http/check-callers.ts";
import { isTraced } from "../../observe/tracing.ts";
import { excessOf, isTruncated } from "../codec/outputs.ts";
import { inferLongList } from "./long-list.ts";
import { runAs, type Load } from "../../tenants/caller.ts";
import type { Served } from "../../cache/served.ts";
import type { InferOptions } from "../../http/call-options.ts";
import type { ServedModel } from "../models/served-model.ts";
import { Problem } from "../../problems/problem.ts";
import { problemFor } from "../../http/replies.ts";

/**
 * For a route whose path names the model: while the model has no room, refuses requests before their bodies are read, which is most
 * of a refusal's cost. `optionsOf` returns the options that headers alone decide, or none if the body has a say.
 */
export function refuseUnread(
  take: (request: FastifyRequest) => ServedModel,
  optionsOf?: (request: FastifyRequest, model: ServedModel) => Pick<InferOptions, "priority" | "timeoutMs">,
): { readonly onRequest?: onRequestHookHandler } {
  // Not with tracing: spans start once the body has been read, and traces include refused requests.
  if (isTraced()) return {};
  return {
    onRequest(request, _reply, done) {
      // Not with tenants: their bounds and counts need the items.
      if (callerOf(request) !== undefined) return done();
      let model: ServedModel | undefined;
      try {
        model = take(request);
        model.checkRoom(optionsOf?.(request, model));
        done();
      } catch (error) {
        // Other errors are left to the route.
        if (model === undefined || !(error instanceof BatcherError)) return done();
        model.statistics.failed(0);
        done(problemFor(error, model));
      }
    },
  };
}

type Settled = PromiseSettledResult<Served>[];

/** Runs one item; `path` is that of its text. @throws {Problem} if it fails. */
export async function inferOne(
  model: ServedModel,
  item: unknown,
  options: InferOptions,
  path?: string,
): Promise<Served> {
  const startedAtMs = performance.now();
  try {
    const served = await runAs(options, loadOf(model, [item]), (asked) => model.infer(item, asked));
    refuseTruncated([served], model, options, () => path);
    const totalMs = performance.now() - startedAtMs;
    model.statistics.answered({ items: served.batchSize === 0 ? 0 : 1, totalMs, queueMs: served.queueMs });
    return served;
  } catch (error) {
    throw failed(error, model, startedAtMs, options);
  }
}

/** Runs a list, even one that is longer than the queue. */
function runList(model: ServedModel, items: readonly unknown[], options: InferOptions): Promise<Settled> {
  const { queueMaxSize, requestTimeoutMs } = model.settings;
  if (items.length <= queueMaxSize || model.takesAnyList) return model.inferAll(items, options);
  return inferLongList(model, items, { ...options, timeoutMs: options.timeoutMs ?? requestTimeoutMs });
}

/** Runs several items, each with its own outcome, in order. @throws {Problem} if none is admitted. */
export async function inferEach(
  model: ServedModel,
  items: readonly unknown[],
  options: InferOptions,
): Promise<Settled> {
  if (items.length === 0) return [];
  const startedAtMs = performance.now();
  try {
    const run = (asked: InferOptions): Promise<Settled> => runList(model, items, asked);
    const outcomes = await runAs(options, loadOf(model, items), run, (all) => all);
    const served = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    answered(model, startedAtMs, served);
    return outcomes.map((outcome) => {
      if (outcome.status === "rejected") return outcome;
      try {
        refuseTruncated([outcome.value], model, options, () => undefined);
        return outcome;
      } catch (reason) {
        return { status: "rejected", reason };
      }
    });
  } catch (error) {
    throw failed(error, model, startedAtMs, options);
  }
}

/**
 * Runs several items, even more than the queue holds; fails if one of them fails. `pathOf` gives the path of an item's text. @throws
 * {Problem}
 */
export async function inferEvery(
  model: ServedModel,
  items: readonly unknown[],
  options: InferOptions,
  pathOf: (index: number) => string,
): Promise<Served[]> {
  // A single item needs no bookkeeping of a list.
  if (items.length === 1) return [await inferOne(model, items[0], options, pathOf(0))];
  const startedAtMs = performance.now();
  try {
    const run = (asked: InferOptions): Promise<Settled> => runList(model, items, asked);
    const served = (await runAs(options, loadOf(model, items), run, (all) => all)).map(valueOf);
    refuseTruncated(served, model, options, pathOf);
    answered(model, startedAtMs, served);
    return served;
  } catch (error) {
    throw failed(error, model, startedAtMs, options);
  }
}

/**
 * Refuses results of truncated texts. Workers count tokens, so only the result shows that a text was cut. `pathOf` gives undefined if
 * the reply has one text.
 * @throws {Problem} 422 naming the first text that was cut but must not be
 */
function refuseTruncated(
  served: readonly Served[],
  { definition: { input }, settings }: ServedModel,
  { truncate }: InferOptions,
  pathOf: (index: number) => string | undefined,
): void {
  const isAllowed = truncate === undefined ? settings.autoTruncate : truncate !== false && truncate !== "NONE";
  const index = isAllowed ? -1 : served.findIndex(({ value }) => isTruncated(value));
  if (index < 0) return;
  const path = pathOf(index);
  const reason = truncate === undefined ? "AUTO_TRUNCATE is false" : `truncate is ${JSON.stringify(truncate)}`;
  const message = `${path ?? "The text"} ${excessOf(served[index]!.value, input)}, and ${reason}.`;
  throw new Problem("INVALID_INPUT", message, { param: path });
}

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
