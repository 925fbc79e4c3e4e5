import type { FastifyReply, FastifyRequest } from "fastify";
import type { ModelInput, ModelOutput } from "../../../runners/contract/model-spec.ts";
import { Type, type Schema } from "../../../http/schema/json-schema.ts";
import { errorResponses, json, type RouteSchema } from "../../../http/schema/route-schema.ts";
import { jsonOf } from "../../../http/bodies/body.ts";
import { callOptionsOf, inferenceHeaders } from "../../../http/call-options.ts";
import { takesPairs, textSchema } from "../../codec/inputs.ts";
import type { ModelDefinition } from "../../contract/model-definition.ts";
import type { ServedModel } from "../../models/served-model.ts";
import type { Models } from "../../models/models.ts";
import { invalid, Problem } from "../../../problems/problem.ts";
import { field, integerFrom, modelThat, object, readLater, required, trueOrFalse } from "../fields.ts";
import { inferEvery } from "../requests.ts";
import { tellTruncated, truncation } from "../truncation.ts";

export const classifies = ({ input, output }: Pick<ModelDefinition, "input" | "output">): boolean =>
  (input.kind === "text" || input.kind === "text-pair") && output.kind === "labels";

type Sequence = readonly [text: unknown, pair?: unknown];

interface TextsToPredict {
  readonly name: string | undefined;
  readonly sequences: readonly Sequence[];
  readonly pathOf: (index: number) => string;
  /** One sequence, whose reply is not in a list. */
  readonly isSingle: boolean;
  readonly isRaw: boolean;
  readonly truncate: boolean | undefined;
  /** Most labels of a text; undefined: all. */
  readonly mostLabels: number | undefined;
  /** A request of the Hub's clients, whose reply is a list for each text, also for a single one. */
  readonly isOfHub: boolean;
}

const predictBody = object("an object with inputs", {
  inputs: required(readLater(inputsSchema)),
  model: field(modelThat(classifies), "Default: the first model that returns labels."),
  raw_scores: field(trueOrFalse, "Return logits instead of scores from 0 to 1.", false),
  parameters: field(
    object("an object with top_k", { top_k: field(integerFrom(1), "Maximum number of labels per text.") }),
    "Parameters that clients of the Hub send; with them the reply has a list for each text.",
  ),
  ...truncation,
});

function readPredict(body: unknown): TextsToPredict {
  const { inputs, model, raw_scores, parameters, truncate } = predictBody.read(body, "");
  return {
    ...readInputs(inputs),
    name: model,
    isRaw: raw_scores,
    truncate,
    mostLabels: parameters?.top_k,
    isOfHub: parameters !== undefined,
  };
}

/** A text, a pair `[text, text]`, or a list of `[text]` and `[text, text]`. */
function inputsSchema({ all, settings }: Models): Schema {
  const inputs = all.filter(({ definition }) => classifies(definition)).map(({ definition }) => definition.input);
  const lengths = { minItems: inputs.some(takesOne) ? 1 : 2, maxItems: inputs.some(takesPairs) ? 2 : 1 };
  const sequence = Type.Array(textSchema(settings), {
    ...(inputs.length === 0 ? { minItems: 1, maxItems: 2 } : lengths),
    description: "A text, or a pair of texts.",
  });
  const several = Type.Array(sequence, { minItems: 1, maxItems: settings.maxInputs });
  return Type.Union([textSchema(settings), sequence, several]);
}

const takesOne = ({ kind }: ModelInput): boolean => kind === "text";

type Inputs = Pick<TextsToPredict, "sequences" | "pathOf" | "isSingle">;

/** A list that begins with a text is one sequence, as TEI reads it. */
function readInputs(inputs: unknown): Inputs {
  if (typeof inputs === "string") return { sequences: [[inputs]], pathOf: () => "inputs", isSingle: true };
  if (!Array.isArray(inputs) || inputs.length === 0) throw invalid("inputs", expected, inputs);
  if (!Array.isArray(inputs[0]))
    return { sequences: [readSequence(inputs, "inputs")], pathOf: () => "inputs", isSingle: true };
  const pathOf = (index: number): string => `inputs[${index}]`;
  return { sequences: inputs.map((sequence, i) => readSequence(sequence, pathOf(i))), pathOf, isSingle: false };
}

const expected = "a text, a pair [text, text], or a list of [text] and [text, text]";

function readSequence(sequence: unknown, path: string): Sequence {
  if (Array.isArray(sequence) && (sequence.length === 1 || sequence.length === 2)) return sequence as [unknown];
  throw invalid(path, "[text] or [text, text]", sequence);
}

const predictions = Type.Array(Type.Object({ score: Type.Number(), label: Type.String() }));

export const predictSchema = (models: Models): RouteSchema => ({
  summary: "Classify texts (TEI)",
  tags: ["TEI"],
  operationId: "teiPredict",
  headers: inferenceHeaders(models.settings),
  body: predictBody.schema(models),
  response: {
    200: json(
      "The labels of the text, or of each text, most likely first.",
      Type.Union([predictions, Type.Array(predictions)]),
    ),
    ...errorResponses("tei"),
  },
});

/** The labels of texts, each with its score, the likeliest first. */
export async function predict(models: Models, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  models.refuseDraining();
  const wanted = readPredict(jsonOf(request.body));
  const model = models.take(wanted.name, "model", classifies);
  const items = readItems(wanted, model);
  const options = { ...callOptionsOf(request, model.settings), truncate: wanted.truncate };
  const served = await inferEvery(model, items, options, wanted.pathOf);
  const outputs = served.map(({ value }) => value);
  tellTruncated(reply, outputs);
  const predictions = outputs.map((output) => predictionsOf(output, model, wanted));
  const body = wanted.isSingle && !wanted.isOfHub ? predictions[0] : predictions;
  return reply.type("application/json").send(JSON.stringify(body));
}

function readItems({ sequences, pathOf }: TextsToPredict, model: ServedModel): unknown[] {
  const { name, definition, settings } = model;
  if (!classifies(definition)) {
    const message = `${name} gives no labels of texts; serve a text classification model.`;
    throw new Problem("INVALID_INPUT", message, { param: "model" });
  }
  const { maxInputs } = settings;
  if (sequences.length > maxInputs) throw invalid("inputs", `a list of at most ${maxInputs} (MAX_INPUTS)`, sequences);
  const { input } = definition;
  return sequences.map((sequence, index) => {
    const [text, pair] = sequence;
    const path = pathOf(index);
    const isPair = sequence.length === 2;
    if (!(isPair ? takesPairs(input) : takesOne(input)))
      throw invalid(path, isPair ? `one text for ${name}` : `a pair of texts for ${name}`, sequence);
    return isPair ? model.parse({ query: text, text: pair }, path) : model.parse(text, path);
  });
}

interface Prediction {
  readonly score: number;
  readonly label: string;
}

function predictionsOf(
  output: unknown,
  { name, definition }: ServedModel,
  { isRaw, mostLabels }: TextsToPredict,
): Prediction[] {
  const { scores, logits } = output as { readonly scores: Float32Array; readonly logits?: Float32Array };
  if (isRaw && logits === undefined)
    throw new Problem("INVALID_INPUT", `raw_scores: ${name} gives no logits.`, { param: "raw_scores" });
  const shown = isRaw ? logits! : scores;
  const { labels } = definition.output as ModelOutput & { readonly kind: "labels" };
  return labels
    .map((label, index) => ({ score: shown[index]!, label }))
    .sort((a, b) => b.score - a.score)
    .slice(0, mostLabels);
}
