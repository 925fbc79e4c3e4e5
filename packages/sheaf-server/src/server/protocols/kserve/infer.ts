import { describe } from "sheaf/internal";
import type { InferOptions } from "../../../http/call-options.ts";
import type { ServedModel } from "../../models/served-model.ts";
import { inferEvery } from "../requests.ts";
import { tensorsOf } from "./model.ts";
import { itemsOf, resultTensor, type TensorValue } from "./model-tensors.ts";
import { readInputs, readOutputs, withParameters, type ReadData } from "./request.ts";
import { costs } from "../../../shared/costs.ts";
import { malformed } from "./tensor-data.ts";

/** A request in either encoding: its fields as in JSON, and a function that finds the elements of its inputs. */
export interface TensorRequest {
  readonly header: Readonly<Record<string, unknown>>;
  /** Whether outputs are bytes where the request does not say. */
  readonly isBinary: boolean;
  readonly readData: ReadData;
  /** Checks, after every input was read, that nothing is left. */
  end(): void;
}

export interface TensorReply {
  readonly id: string | undefined;
  readonly outputs: readonly { readonly value: TensorValue; readonly isBinary: boolean }[];
  /** Of the items, as the model gave them. */
  readonly results: readonly unknown[];
}

/** Runs a model on the rows of a request; `options` without those of its `parameters`. @throws {Problem} */
export async function inferTensors(
  model: ServedModel,
  { header, isBinary, readData, end }: TensorRequest,
  options: InferOptions,
): Promise<TensorReply> {
  const { definition, settings } = model;
  const tensors = tensorsOf(model);
  const { values, count } = readInputs(header["inputs"], readData, tensors.inputs, model);
  end();
  const wanted = readOutputs(header, tensors.outputs, isBinary);
  const { id } = header;
  if (id !== undefined && !(typeof id === "string" && id.length <= costs.idLength))
    throw malformed(`id must be a text of at most ${costs.idLength} characters, got ${describe(id)}.`);
  const asked = withParameters(options, header["parameters"], settings.requestTimeoutMs);
  const served = await inferEvery(model, itemsOf(model, values, count), asked, (index) => `Input ${index}`);
  const results = served.map(({ value }) => value);
  const outputs = wanted.map((output) => ({
    value: resultTensor(definition.output, output.tensor, results),
    isBinary: output.isBinary,
  }));
  definition.jsonDemand?.note(results.length === 1 && outputs.some((output) => !output.isBinary));
  return { id, outputs, results };
}
