import type { FastifyReply, FastifyRequest } from "fastify";
import type { ModelOutput } from "../../../runners/contract/model-spec.ts";
import { jsonOf } from "../../../http/bodies/body.ts";
import { callOptionsOf } from "../../../http/call-options.ts";
import { mostValuesOfTexts } from "../../codec/most-values.ts";
import type { ModelDefinition } from "../../contract/model-definition.ts";
import type { ServedModel } from "../../models/served-model.ts";
import type { Models } from "../../models/models.ts";
import { invalid, Problem } from "../../../problems/problem.ts";
import { inferEvery } from "../requests.ts";
import { refuseTruncated } from "../truncation.ts";
import { readPredict, type TextsToPredict } from "./predict-request.ts";

/** Whether a model gives labels of texts. */
export const classifies = ({ input, output }: Pick<ModelDefinition, "input" | "output">): boolean =>
  (input.kind === "text" || input.kind === "text-pair") && output.kind === "labels";

/** The labels of texts, each with its score, the likeliest first. */
export async function predict(models: Models, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  models.refuseDraining();
  const wanted = readPredict(jsonOf(request.body, models.settings, mostValuesOfTexts(models.settings)));
  const model = models.take(wanted.name, "model", classifies);
  const items = readItems(wanted, model);
  const served = await inferEvery(model, items, callOptionsOf(request, model.settings));
  const outputs = served.map(({ value }) => value);
  if (!wanted.truncate) refuseTruncated(outputs, model, wanted.pathOf);
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
  const takesPairs = definition.input.kind === "text-pair";
  return sequences.map((sequence, index) => {
    const [text, pair] = sequence;
    const path = pathOf(index);
    if ((sequence.length === 2) !== takesPairs)
      throw invalid(path, takesPairs ? `a pair of texts for ${name}` : `one text for ${name}`, sequence);
    return takesPairs ? model.parse({ query: text, text: pair }, path) : model.parse(text, path);
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
