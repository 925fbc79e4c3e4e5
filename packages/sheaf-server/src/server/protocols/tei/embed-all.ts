import type { FastifyReply, FastifyRequest } from "fastify";
import type { ModelOutput } from "../../../runners/contract/model-spec.ts";
import { Type } from "../../../http/schema/json-schema.ts";
import { errorResponses, json, type RouteSchema } from "../../../http/schema/route-schema.ts";
import { jsonOf } from "../../../http/bodies/body.ts";
import { callOptionsOf, inferenceHeaders } from "../../../http/call-options.ts";
import { commaSeparated } from "../../codec/json-bytes.ts";
import { outputJson } from "../../codec/outputs.ts";
import type { ModelDefinition } from "../../contract/model-definition.ts";
import type { Models } from "../../models/models.ts";
import { invalid, Problem } from "../../../problems/problem.ts";
import { oneOrMoreTexts, vectorJson } from "../embed-texts.ts";
import { field, modelThat, object, required } from "../fields.ts";
import { inferEvery } from "../requests.ts";
import { sendJson } from "../send-json.ts";
import { tellTruncated, truncation } from "../truncation.ts";

type Tensors = ModelOutput & { readonly kind: "tensors" };

/** Whether a model gives a vector for each token of a text: one tensor of float32, `[tokens, length]`. */
export const givesTokenVectors = ({ input, output }: Pick<ModelDefinition, "input" | "output">): boolean =>
  input.kind === "text" &&
  output.kind === "tensors" &&
  output.tensors.length === 1 &&
  output.tensors[0]!.datatype === "FP32" &&
  output.tensors[0]!.shape.length === 2;

const embedAllBody = object("an object with inputs", {
  inputs: required(oneOrMoreTexts),
  model: field(modelThat(givesTokenVectors), "Default: the first model that returns token vectors."),
  ...truncation,
});

export const embedAllSchema = (models: Models): RouteSchema => ({
  summary: "Embed every token of texts (TEI)",
  tags: ["TEI"],
  operationId: "teiEmbedAll",
  headers: inferenceHeaders(models.settings),
  body: embedAllBody.schema(models),
  response: {
    200: json("The token vectors of each text.", Type.Array(Type.Array(vectorJson))),
    ...errorResponses("tei"),
  },
});

/** The vectors of all tokens of each text. */
export async function embedAll(models: Models, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  models.refuseDraining();
  const body = jsonOf(request.body);
  const { inputs, model: name, truncate } = embedAllBody.read(body, "");
  const model = models.take(name, "model", givesTokenVectors);
  const { definition, settings } = model;
  if (!givesTokenVectors(definition)) {
    const message = `${model.name} gives no vectors of tokens: its output is not one tensor [tokens, length] of float32.`;
    throw new Problem("INVALID_INPUT", message, { param: "model" });
  }
  const texts: readonly unknown[] = Array.isArray(inputs) ? inputs : [inputs];
  if (texts.length === 0) throw invalid("inputs", "a text or an array of texts that is not empty", inputs);
  if (texts.length > settings.maxInputs)
    throw invalid("inputs", `an array of at most ${settings.maxInputs} texts (MAX_INPUTS)`, inputs);
  const pathOf = (index: number): string => (Array.isArray(inputs) ? `inputs[${index}]` : "inputs");
  const items = texts.map((text, index) => model.parse(text, pathOf(index)));
  const served = await inferEvery(model, items, { ...callOptionsOf(request, settings), truncate }, pathOf);
  const outputs = served.map(({ value }) => value);
  tellTruncated(reply, outputs);
  const bare: Tensors = { ...(definition.output as Tensors), isBare: true };
  const rows = commaSeparated(outputs.map((output) => outputJson(output, bare)));
  return sendJson(reply, ["[", ...rows, "]"], settings);
}
