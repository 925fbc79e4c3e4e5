import type { FastifyReply } from "fastify";
import type { Priority } from "sheaf";
import { sigmoid } from "../../runners/text/vector-modules.ts";
import { jsonOf } from "../../http/bodies/body.ts";
import { Type, type Schema } from "../../http/schema/json-schema.ts";
import { callOptionsOf } from "../../http/call-options.ts";
import { ranksTexts } from "../contract/model-definition.ts";
import type { ServedModel } from "../models/served-model.ts";
import type { Models } from "../models/models.ts";
import { textSchema } from "../codec/inputs.ts";
import { tokensOf, vectorOf } from "../codec/outputs.ts";
import { invalid, Problem } from "../../problems/problem.ts";
import type { Kind } from "./fields.ts";
import { promptOf, withPrompt } from "./prompts.ts";
import { inferEvery } from "./requests.ts";
import { checkTokenLimit, tellTruncated, truncationWarnings, type TokenLimit } from "./truncation.ts";

/** A ranking request, as its route has read it. */
export interface TextsToRank {
  /** The model; undefined: the first that can rank. */
  readonly name: string | undefined;
  readonly query: unknown;
  readonly texts: readonly unknown[];
  /** The field that has the texts. */
  readonly path: string;
  readonly pathOf: (index: number) => string;
  /** Most texts of the reply; undefined: all. */
  readonly mostRanks: number | undefined;
  /** Logits of a cross-encoder instead of scores from 0 to 1. @default false */
  readonly isRaw?: boolean;
  /** Whether texts of too many tokens are cut, not refused. @default the setting AUTO_TRUNCATE */
  readonly truncate?: boolean | undefined;
  /** @default none */
  readonly tokenLimits?: readonly (TokenLimit | undefined)[];
  /** As the body names it. @default none */
  readonly priority?: Priority | undefined;
}

export interface Rank {
  readonly index: number;
  readonly score: number;
}

export interface Ranked {
  readonly model: ServedModel;
  /** The best first. */
  readonly ranks: readonly Rank[];
  readonly tokens: number;
  /** A sentence on what was truncated. */
  readonly warnings: readonly string[] | undefined;
}

/** Reads and runs a ranking request, for the routes of every imitated service. @throws {Problem} */
export async function rankTexts<Wanted extends TextsToRank>(
  models: Models,
  reply: FastifyReply,
  read: (body: unknown) => Wanted,
): Promise<Ranked & { readonly wanted: Wanted }> {
  const { request } = reply;
  // The model is named in the body, so a draining server refuses before it reads that.
  models.refuseDraining();
  const wanted = read(jsonOf(request.body));
  const model = models.take(wanted.name, "model", ranksTexts);
  if (!ranksTexts(model.definition)) {
    const message = `${model.name} cannot rank texts; serve a cross-encoder or a text embedding model.`;
    throw new Problem("INVALID_INPUT", message, { param: "model" });
  }
  for (const limit of wanted.tokenLimits ?? []) checkTokenLimit(limit, model);
  const isPair = model.definition.input.kind === "text-pair";
  const items = readItems(wanted, model, isPair);
  const options = { ...callOptionsOf(request, model.settings, wanted.priority), truncate: wanted.truncate };
  const pathOf = (index: number): string => {
    if (isPair) return wanted.pathOf(index);
    return index === 0 ? "query" : wanted.pathOf(index - 1);
  };
  const served = await inferEvery(model, items, options, pathOf);
  const outputs = served.map(({ value }) => value);
  tellTruncated(reply, outputs);
  const scores = isPair ? outputs.map((output) => scoreOf(output, wanted.isRaw === true)) : similarities(outputs);
  const ranks = scores.map((score, index) => ({ index, score })).sort((a, b) => b.score - a.score);
  const tokens = outputs.reduce((sum: number, output) => sum + tokensOf(output), 0);
  const warnings = truncationWarnings(outputs, pathOf);
  return { wanted, model, ranks: ranks.slice(0, wanted.mostRanks), tokens, warnings };
}

/** Texts to rank, each read by `item`; a model that compares vectors needs a place in the queue for the query too. */
export const textsToRank = (item: (text: Schema) => Schema): Kind<readonly unknown[]> => ({
  read(texts, path) {
    if (!Array.isArray(texts)) throw invalid(path, "an array of texts", texts);
    if (texts.length === 0) throw invalid(path, "an array that is not empty", texts);
    return texts;
  },
  schema: ({ settings }) =>
    Type.Array(item(textSchema(settings)), {
      minItems: 1,
      maxItems: Math.max(1, Math.min(settings.maxInputs, settings.queueMaxSize - 1)),
    }),
});

function readItems({ query, texts, path, pathOf }: TextsToRank, model: ServedModel, isPair: boolean): unknown[] {
  const { maxInputs, queueMaxSize } = model.settings;
  const most = Math.min(maxInputs, queueMaxSize - (isPair ? 0 : 1));
  if (texts.length > most) throw invalid(path, `an array of at most ${most} texts (MAX_INPUTS, QUEUE_MAX_SIZE)`, texts);
  if (!isPair) {
    const [asked, others] = ["query", "document"].map((inputType) => promptOf({ path: "model", inputType }, model));
    const documents = texts.map((text, i) => model.parse(text, pathOf(i)));
    return [...withPrompt([model.parse(query, "query")], asked), ...withPrompt(documents, others)];
  }
  const mostChars = (mostQueryTimes * model.settings.maxTextChars) / texts.length;
  if (typeof query === "string" && query.length > mostChars)
    throw invalid("query", `at most ${Math.floor(mostChars)} characters beside ${texts.length} texts`, query);
  return texts.map((text, i) => {
    if (typeof text !== "string" || text === "") throw invalid(pathOf(i), "a text that is not empty", text);
    return model.parse({ query, text }, "");
  });
}

/** A cross-encoder gets a copy of the query with each text; bounds all copies, in multiples of MAX_TEXT_CHARS. */
const mostQueryTimes = 100;

/** A score between 0 and 1, or the raw logit; a model without logits has only its score. */
function scoreOf(output: unknown, isRaw: boolean): number {
  const { score, logit } = output as { readonly score: number; readonly logit?: number };
  if (logit === undefined) return score;
  return isRaw ? logit : sigmoid(logit);
}

/** Cosines of the first vector with each of the others. */
function similarities(outputs: readonly unknown[]): number[] {
  const [query, ...texts] = outputs.map(vectorOf);
  const lengthOf = (vector: Float32Array): number => Math.hypot(...vector);
  const queryLength = lengthOf(query!);
  return texts.map((text) => {
    const product = text.reduce((sum, value, i) => sum + value * query![i]!, 0);
    const lengths = queryLength * lengthOf(text);
    return lengths === 0 ? 0 : product / lengths;
  });
}
