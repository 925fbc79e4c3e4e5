import type { FastifyReply } from "fastify";
import type { Priority } from "sheaf";
import type { ModelOutput, VectorRanges } from "../../runners/contract/model-spec.ts";
import { ofLengthOne, shortened } from "../../runners/text/vector-modules.ts";
import { jsonOf } from "../../http/bodies/body.ts";
import { Type, type Schema } from "../../http/schema/json-schema.ts";
import { callOptionsOf, type Truncate } from "../../http/call-options.ts";
import { nameUser } from "../../http/check-callers.ts";
import type { Settings } from "../../settings/settings.ts";
import { embedsTexts } from "../contract/model-definition.ts";
import type { ServedModel } from "../models/served-model.ts";
import type { Models } from "../models/models.ts";
import { textSchema } from "../codec/inputs.ts";
import { needsRanges, type QuantizedType } from "../codec/quantize.ts";
import { rangesFile } from "../../runners/text/ranges.ts";
import { tokensOf, vectorOf } from "../codec/outputs.ts";
import { invalid, Problem } from "../../problems/problem.ts";
import { field, kindOf, modelThat, readLater, type Field, type Kind } from "./fields.ts";
import { promptOf, withPrompt, type WantedPrompt } from "./prompts.ts";
import { inferEvery } from "./requests.ts";
import { checkTokenLimit, tellTruncated, truncationWarnings, type TokenLimit } from "./truncation.ts";

/** A request for vectors, as its route has read it. */
export interface TextsToEmbed {
  /** The model; undefined: the first that embeds texts. */
  readonly name: string | undefined;
  readonly texts: unknown;
  /** The field that has the texts. */
  readonly path: string;
  /** Length of the vectors; undefined: the model's own. */
  readonly dimensions?: unknown;
  /** The field that has it. @default "dimensions" */
  readonly dimensionsPath?: string;
  /** The user that the caller names. @default none */
  readonly user?: unknown;
  /** @default the model's own prompt */
  readonly prompt?: WantedPrompt | undefined;
  /** The side on which long texts are truncated, unless `truncate` names one. @default the model's */
  readonly cut?: "left" | "right" | undefined;
  /** @default the setting AUTO_TRUNCATE */
  readonly truncate?: Truncate | undefined;
  /** @default none */
  readonly tokenLimit?: TokenLimit | undefined;
  /** As the body names it. @default none */
  readonly priority?: Priority | undefined;
  /** Vectors of length 1, whatever the model gives. @default false */
  readonly isUnit?: boolean;
  /** Whether the reply has the vectors as JSON. @default true */
  readonly isJson?: boolean;
  /** Types of small integers in which the reply has the vectors. @default none */
  readonly quantizedAs?: { readonly path: string; readonly types: readonly QuantizedType[] };
}

export interface Embedded {
  readonly model: ServedModel;
  readonly vectors: readonly Float32Array[];
  /** Of each number of the vectors, where the model's folder has them. */
  readonly ranges: VectorRanges | undefined;
  readonly tokens: number;
  /** A sentence on what was truncated. */
  readonly warnings: readonly string[] | undefined;
}

/** Reads a request for vectors and runs it: for the routes of every service that embeds texts. @throws {Problem} */
export async function embedTexts(
  models: Models,
  reply: FastifyReply,
  read: (body: unknown) => TextsToEmbed,
): Promise<Embedded> {
  const { request } = reply;
  // The model is named in the body: a draining server says so before it reads one.
  models.refuseDraining();
  const wanted = read(jsonOf(request.body));
  nameUser(request, wanted.user);
  const model = models.take(wanted.name, "model", embedsTexts);
  const items = withPrompt(readTexts(wanted, model), promptOf(wanted.prompt, model), cutOn(wanted, model));
  const length = readDimensions(wanted, model);
  const ranges = readRanges(wanted, model, length);
  checkTokenLimit(wanted.tokenLimit, model);
  const options = { ...callOptionsOf(request, model.settings, wanted.priority), truncate: wanted.truncate };
  const pathOf = (index: number): string => (Array.isArray(wanted.texts) ? `${wanted.path}[${index}]` : wanted.path);
  const served = await inferEvery(model, items, options, pathOf);
  const outputs = served.map(({ value }) => value);
  tellTruncated(reply, outputs);
  model.definition.jsonDemand?.note((wanted.isJson ?? true) && length === undefined);
  const vectors = outputs.map((output) => {
    if (length !== undefined) return shortened(vectorOf(output), length);
    return wanted.isUnit === true ? ofLengthOne(vectorOf(output)) : vectorOf(output);
  });
  const tokens = outputs.reduce((sum: number, output) => sum + tokensOf(output), 0);
  return { model, vectors, ranges, tokens, warnings: truncationWarnings(outputs, pathOf) };
}

/** @throws {Problem} 422 a type that needs ranges, of a model that has none of that length. */
function readRanges(
  { quantizedAs }: TextsToEmbed,
  { name, definition }: ServedModel,
  wanted: number | undefined,
): VectorRanges | undefined {
  const { length, ranges = {} } = definition.output as Vector;
  const found = ranges[wanted ?? length];
  const type = quantizedAs?.types.find(needsRanges);
  if (type === undefined || found !== undefined) return found;
  const message =
    `${quantizedAs!.path}: ${name} gives no ${type}, because its folder has no ${rangesFile} for ${wanted ?? length} dimensions; ` +
    `"sheaf ranges" makes it from a sample of texts. Ranges of the texts at hand would make a vector depend on its neighbours.`;
  throw new Problem("INVALID_INPUT", message, { param: quantizedAs!.path });
}

/** @throws {Problem} 422 another side than the model's own, which cannot be chosen. */
function cutOn({ cut, truncate }: TextsToEmbed, { definition: { input } }: ServedModel): "left" | undefined {
  const isStart = truncate === "START";
  if (cut !== "left" && !isStart) return undefined;
  if (input.kind === "text" && input.prompts !== undefined) return "left";
  const [path, end] = isStart ? ["truncate", '"END"'] : ["truncation_direction", '"right"'];
  throw invalid(path, `${end}: the model cuts texts at their end`, isStart ? truncate : cut);
}

export const embeddingModel: Field<string | undefined> = field(
  modelThat(embedsTexts),
  "Default: the first model that embeds texts.",
);

/** One text, or several, for `readTexts`. */
export const oneOrMoreTexts: Kind<unknown> = readLater(({ settings }) =>
  Type.Union([textSchema(settings), listOfTexts(settings)]),
);

/** Several texts, for `readTexts`. */
export const severalTexts: Kind<readonly unknown[]> = kindOf("an array of texts", Array.isArray, ({ settings }) =>
  listOfTexts(settings),
);

const listOfTexts = (settings: Settings): Schema =>
  Type.Array(textSchema(settings), { minItems: 1, maxItems: settings.maxInputs });

/** One invalid text fails the request, since the reply has no place for its error. */
function readTexts({ texts, path }: TextsToEmbed, model: ServedModel): unknown[] {
  if (!embedsTexts(model.definition))
    throw new Problem("INVALID_INPUT", `${model.name} does not embed texts; use /infer/${model.name}.`, {
      param: "model",
    });
  if (!Array.isArray(texts)) return [model.parse(texts, path)];
  if (isTokens(texts[0])) throw tokens(path, model);
  const { maxInputs } = model.settings;
  if (texts.length === 0) throw invalid(path, "a text or an array of texts that is not empty", texts);
  if (texts.length > maxInputs) throw invalid(path, `an array of at most ${maxInputs} texts (MAX_INPUTS)`, texts);
  return texts.map((value: unknown, index) => model.parse(value, `${path}[${index}]`));
}

/** A token id, or a text as token ids. */
const isTokens = (value: unknown): boolean => Number.isInteger(Array.isArray(value) ? value[0] : value);

/** Token ids belong to the caller's vocabulary, which is seldom the model's. */
function tokens(path: string, { name }: ServedModel): Problem {
  const message =
    `${path} must be a text or an array of texts: ${name} does not take token ids. ` +
    "With LangChain for Python, set check_embedding_ctx_length=False on OpenAIEmbeddings.";
  return new Problem("INVALID_INPUT", message, { param: path });
}

export const vectorLength: Field<unknown> = field(
  readLater(({ all }) => lengthSchema(all.filter(({ definition }) => embedsTexts(definition)))),
  "Length of the vectors: the model's own, or a shorter one if its folder allows it.",
);

function lengthSchema(models: readonly ServedModel[]): Schema {
  const outputs = models.map(({ definition }) => definition.output as Vector);
  if (outputs.length === 0 || outputs.some(({ dimensions }) => dimensions === "any"))
    return Type.Integer({ minimum: 1, maximum: Math.max(1, ...outputs.map(({ length }) => length)) });
  const lengths = outputs.flatMap(({ length, dimensions: shorter = [] }) => [
    length,
    ...(shorter as readonly number[]).filter((one) => one < length),
  ]);
  return Type.Integer({ enum: [...new Set(lengths)] });
}

type Vector = ModelOutput & { readonly kind: "vector" };

/** Requested length of the vectors; undefined for the model's own. */
function readDimensions(
  { dimensions, dimensionsPath: path = "dimensions" }: TextsToEmbed,
  { name, definition }: ServedModel,
): number | undefined {
  const { length, dimensions: shorter = [] } = definition.output as Vector;
  if ((dimensions ?? length) === length) return undefined;
  const isInteger = Number.isSafeInteger(dimensions) && (dimensions as number) >= 1 && (dimensions as number) < length;
  if (isInteger && (shorter === "any" || shorter.includes(dimensions as number))) return dimensions as number;
  if (shorter === "any") throw invalid(path, `an integer from 1 to ${length}`, dimensions);
  const only = `${length}, the only length ${name} gives (its config.json names no matryoshka_dimensions)`;
  const lengths = [...shorter.filter((one) => one < length), length];
  throw invalid(path, lengths.length === 1 ? only : `one of ${lengths.join(", ")}`, dimensions);
}

export const vectorJson: Schema = Type.Array(Type.Number());
