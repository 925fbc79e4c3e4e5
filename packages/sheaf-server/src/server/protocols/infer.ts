import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { CallOptions } from "sheaf";
import { exactJsonOf, jsonOf } from "../../http/bodies/body.ts";
import { callOptionsOf, inferenceHeaders, waitOf } from "../../http/call-options.ts";
import { floatInputsOf } from "../codec/float-inputs.ts";
import { itemSchema, objectOf, takesJson, takesObjects } from "../codec/inputs.ts";
import { commaSeparated, type JsonParts } from "../codec/json-bytes.ts";
import type { Served } from "../../cache/served.ts";
import type { ServedModel } from "../models/served-model.ts";
import type { Models } from "../models/models.ts";
import { isTruncated, outputJson, tokensOf } from "../codec/outputs.ts";
import { invalid, Problem, problemOf } from "../../problems/problem.ts";
import { inferEach, inferOne, refuseUnread } from "./requests.ts";
import { Type, type Schema } from "../../http/schema/json-schema.ts";
import { count, described, json, problemResponses, type RouteSchema } from "../../http/schema/route-schema.ts";
import type { Settings } from "../../settings/settings.ts";
import { modelParameter } from "./fields.ts";
import { sendJson } from "./send-json.ts";
import { tellTruncated } from "./truncation.ts";

/** One of several inputs: an item of the model, or its fault. */
type Item = { readonly item: unknown } | { readonly problem: Problem };
type Input = { readonly item: unknown } | { readonly inputs: readonly Item[] };

/** `POST /infer` and `/infer/{model}`: one input, bare or as `input`, or several as `inputs`. */
export function inferRoutes(app: FastifyInstance, models: Models): void {
  const take = ({ params }: FastifyRequest): ServedModel =>
    models.take((params as { readonly model?: string }).model, "model");
  const early = refuseUnread(take, ({ headers }, { settings }) => waitOf(headers, settings));
  const answer = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const model = take(request);
    const options = callOptionsOf(request, model.settings);
    const startedAtMs = performance.now();
    const input = readInput(request.body, model);
    const served = await run(input, model, options);
    tellTruncated(reply, served.values);
    model.definition.jsonDemand?.note(true);
    const latencyMs = rounded(performance.now() - startedAtMs);
    const tail = `,"latency_ms":${latencyMs},"request_id":${JSON.stringify(request.id)}}`;
    return sendJson(reply, [`{"model":${JSON.stringify(model.name)},`, ...served.parts, tail], model.settings);
  };
  for (const isNamed of [false, true]) {
    app.post(
      isNamed ? "/infer/:model" : "/infer",
      { ...described(() => inferSchema(models, isNamed)), ...early },
      answer,
    );
  }
}

async function run(
  input: Input,
  model: ServedModel,
  options: CallOptions,
): Promise<{ readonly parts: JsonParts; readonly values: readonly unknown[] }> {
  if ("item" in input) {
    const served = await inferOne(model, input.item, options);
    return { parts: oneJson(served, model), values: [served.value] };
  }
  const outcomes = await inferValid(model, input.inputs, options);
  const values = outcomes.flatMap((outcome) => (outcome?.status === "fulfilled" ? [outcome.value.value] : []));
  return { parts: severalJson(input.inputs, outcomes, model), values };
}

/** Everything that is wrong with a request is found here, before it takes any queue space. */
function readInput(body: unknown, model: ServedModel): Input {
  const { input: takes } = model.definition;
  const { maxInputs, queueMaxSize } = model.settings;
  const floats =
    takes.kind === "floats" ? floatInputsOf(body, takes.length, Math.min(maxInputs, queueMaxSize)) : undefined;
  if (floats === undefined) {
    const { settings } = model;
    if (!takesJson(takes)) return readJson(jsonOf(body), model);
    const { json, changed } = exactJsonOf(body, settings.maxInputs);
    return readJson(json, model, changed);
  }
  return "item" in floats ? floats : { inputs: floats.items.map((item) => ({ item })) };
}

function readJson(body: unknown, model: ServedModel, changed?: ReadonlyMap<string, Problem>): Input {
  const parse = (value: unknown, path: string): unknown => {
    const wrong = path.startsWith("inputs[") ? changed?.get(path) : changed?.values().next().value;
    if (wrong !== undefined) throw wrong;
    return model.parse(value, path);
  };
  if (typeof body !== "object" || body === null || Array.isArray(body)) return { item: parse(body, "") };
  const isEnvelope = "input" in body || "inputs" in body;
  if (!isEnvelope && takesObjects(model.definition.input)) return { item: parse(body, "") };
  const { input, inputs } = objectOf(body, "", "an input", ["input", "inputs"]);
  if (input !== undefined && inputs !== undefined) throw invalid("", 'either "input" or "inputs"', body);
  if (inputs === undefined) return { item: parse(input, "input") };
  if (!Array.isArray(inputs)) throw invalid("inputs", "an array of inputs", inputs);
  if (inputs.length === 0) throw invalid("inputs", "an array that is not empty", inputs);
  const { maxInputs, queueMaxSize } = model.settings;
  if (inputs.length > maxInputs) throw invalid("inputs", `an array of at most ${maxInputs} (MAX_INPUTS)`, inputs);
  if (inputs.length > queueMaxSize)
    throw invalid(
      "inputs",
      `an array of at most ${queueMaxSize}, all that the queue can hold (QUEUE_MAX_SIZE)`,
      inputs,
    );
  return { inputs: inputs.map((value: unknown, index) => parseItem(() => parse(value, `inputs[${index}]`))) };
}

/** An item, bare or as `input`; or several, of which a wrong one has its error in its place. */
function inferBody(models: readonly ServedModel[], { maxInputs, queueMaxSize }: Settings): Schema {
  const items = models.map(({ definition, settings }) => itemSchema(definition.input, settings));
  const item = items.length === 1 ? items[0]! : items.length === 0 ? Type.Unknown() : Type.Union(items);
  const inputs = Type.Array(Type.Unknown(), { minItems: 1, maxItems: Math.min(maxInputs, queueMaxSize) });
  return Type.Union([
    Type.Object({ input: item }, { additionalProperties: false }),
    Type.Object({ inputs }, { additionalProperties: false }),
    item,
  ]);
}

function parseItem(parse: () => unknown): Item {
  try {
    return { item: parse() };
  } catch (error) {
    if (error instanceof Problem) return { problem: error };
    throw error;
  }
}

/** Runs the valid items. Outcomes have the indices of the items; those of invalid ones are undefined. */
async function inferValid(
  model: ServedModel,
  inputs: readonly Item[],
  options: CallOptions,
): Promise<(PromiseSettledResult<Served> | undefined)[]> {
  const items = inputs.flatMap((input) => ("item" in input ? [input.item] : []));
  const outcomes = await inferEach(model, items, options);
  let next = 0;
  return inputs.map((input) => ("item" in input ? outcomes[next++] : undefined));
}

function oneJson({ value, queueMs, runMs, batchSize }: Served, { definition }: ServedModel): JsonParts {
  const tokens = tokensOf(value) > 0 ? `,"tokens":${tokensOf(value)}` : "";
  const truncated = isTruncated(value) ? `,"truncated":true` : "";
  const rest = `${tokens}${truncated},${timing(queueMs, runMs, batchSize)}`;
  return [`"output":`, ...outputJson(value, definition.output), rest];
}

function severalJson(
  inputs: readonly Item[],
  outcomes: readonly (PromiseSettledResult<Served> | undefined)[],
  { definition }: ServedModel,
): JsonParts {
  let queueMs = 0;
  let runMs = 0;
  let batchSize = 0;
  const outputs = outcomes.map((outcome, index): JsonParts => {
    const input = inputs[index]!;
    if (outcome === undefined) return [errorJson("problem" in input ? input.problem : undefined)];
    if (outcome.status === "rejected") return [errorJson(outcome.reason)];
    queueMs = Math.max(queueMs, outcome.value.queueMs);
    runMs = Math.max(runMs, outcome.value.runMs);
    batchSize = Math.max(batchSize, outcome.value.batchSize);
    try {
      return outputJson(outcome.value.value, definition.output);
    } catch (error) {
      return [errorJson(error)];
    }
  });
  return [`"outputs":[`, ...commaSeparated(outputs), `],${timing(queueMs, runMs, batchSize)}`];
}

const timing = (queueMs: number, runMs: number, batchSize: number): string =>
  `"queue_ms":${rounded(queueMs)},"run_ms":${rounded(runMs)},"batch_size":${batchSize}`;

function errorJson(error: unknown): string {
  const { code, message } = problemOf(error);
  return JSON.stringify({ error: { code, message } });
}

/** Milliseconds to a thousandth. */
const rounded = (ms: number): number => Math.round(ms * 1000) / 1000;

const ms = (description: string): Schema =>
  Type.Number({ minimum: 0, description: `${description}, in milliseconds.` });
const itemError = Type.Object({ error: Type.Object({ code: Type.String(), message: Type.String() }) });
const timingSchema = {
  latency_ms: ms("Time from arrival to reply"),
  queue_ms: ms("Time from arrival to the start of the batch (the longest, for several inputs)"),
  run_ms: ms("Run time of the batch (the longest, for several inputs)"),
  batch_size: count("Number of items in the batch (the largest, for several inputs); 0 if the cache answered."),
  request_id: Type.String(),
};

/** `isNamed`: of `/infer/{model}`, else of `/infer`, which only the first model answers. */
const inferSchema = (models: Models, isNamed: boolean): RouteSchema => ({
  summary: isNamed ? "Run a model" : "Run the first model",
  description:
    'Send one input, bare (`"text"`, `[0.1, …]`) or as `input`, or several as `inputs`. Several are admitted or refused ' +
    "together; an invalid or failed one has its error in its place.",
  tags: ["inference"],
  operationId: isNamed ? "inferModel" : "infer",
  ...(isNamed ? { params: Type.Object({ model: modelParameter(models) }) } : {}),
  headers: inferenceHeaders(models.settings),
  body: inferBody(isNamed ? models.all : models.unnamed, models.settings),
  response: {
    200: json(
      "The result of one input, or the results of several in order.",
      Type.Union([
        Type.Object({ model: Type.String(), output: Type.Unknown(), ...timingSchema }),
        Type.Object({
          model: Type.String(),
          outputs: Type.Array(Type.Union([itemError, Type.Unknown()])),
          ...timingSchema,
        }),
      ]),
    ),
    ...problemResponses,
  },
});
