import { floatsOfHalves } from "../tensors/half.ts";
import type { OnnxSession } from "../onnx/onnx-session.ts";
import { Tensor, type InferenceSession } from "../onnx/runtime.ts";
import type { FolderSettings } from "./folder-settings.ts";

export interface TextTokens {
  readonly ids: readonly number[];
  readonly types: readonly number[];
}

/** The graph of a text model: its inputs, and the output that has the result. */
export interface TextGraph {
  readonly output: string;
  /** Whether the output is what the folder's modules make, vectors of texts, or vectors of tokens; for heads logits. */
  readonly gives: "finished vectors" | "vectors" | "token vectors" | "logits";
  /** The length to which texts are padded, if the graph accepts only one. */
  readonly fixedLength: number | undefined;
  readonly isOneByOne: boolean;
  /** The graph's inputs for texts padded to a length. */
  feedsOf(texts: readonly TextTokens[], length: number): InferenceSession.FeedsType;
}

type Metadata = InferenceSession.ValueMetadata;
type TensorMetadata = Metadata & { readonly isTensor: true };

const knownInputs: readonly string[] = ["input_ids", "attention_mask", "token_type_ids", "position_ids"];
const pastInput = /^past_key_values\.\d+\.(?:key|value)$/u;

/** @throws {Error} naming an input that no tokenizer gives, or why no output is an embedding. */
export function textGraph({ inputMetadata, outputMetadata }: OnnxSession, settings: FolderSettings): TextGraph {
  const { modelPath } = settings;
  const inputs = inputMetadata.map((input) => {
    if (input.isTensor && (knownInputs.includes(input.name) || pastInput.test(input.name))) return input;
    throw new Error(`${modelPath} asks for ${input.name}; known are ${knownInputs.join(", ")} and empty past keys.`);
  });
  const ids = inputs.find(({ name }) => name === "input_ids");
  if (ids === undefined) throw new Error(`${modelPath} has no input input_ids.`);
  const [batch, length] = ids.shape;
  if (typeof batch === "number" && batch > 1)
    throw new Error(`${modelPath} takes exactly ${batch} texts per run; export it with a dynamic batch axis.`);
  const feeders = inputs.map((input) => [input.name, feederOf(input, settings)] as const);
  return {
    ...outputOf(outputMetadata, settings),
    fixedLength: typeof length === "number" && length > 0 ? length : undefined,
    isOneByOne: batch === 1,
    feedsOf: (texts, longest) => Object.fromEntries(feeders.map(([name, feed]) => [name, feed(texts, longest)])),
  };
}

type Feeder = (texts: readonly TextTokens[], length: number) => Tensor;

function feederOf(input: TensorMetadata, { padId, firstPosition, modelPath }: FolderSettings): Feeder {
  const { name, type, shape } = input;
  if (pastInput.test(name)) return emptyPast(input, modelPath);
  if (type !== "int64" && type !== "int32")
    throw new Error(`${modelPath}: ${name} is ${type}; int64 and int32 are served.`);
  if (shape.length !== 2)
    throw new Error(`${modelPath}: ${name} has ${shape.length} axes; [batch, tokens] are served.`);
  const columns: Readonly<Record<string, readonly [pad: number, row: (text: TextTokens) => readonly number[]]>> = {
    input_ids: [padId, ({ ids }) => ids],
    attention_mask: [0, ({ ids }) => ids.map(() => 1)],
    token_type_ids: [0, ({ types }) => types],
    position_ids: [0, ({ ids }) => ids.map((_, place) => firstPosition + place)],
  };
  const [pad, rowOf] = columns[name]!;
  return (texts, length) => {
    const dims = [texts.length, length];
    if (type === "int32") {
      const values = new Int32Array(texts.length * length).fill(pad);
      texts.forEach((text, i) => values.set(rowOf(text), i * length));
      return new Tensor("int32", values, dims);
    }
    const values = new BigInt64Array(texts.length * length).fill(BigInt(pad));
    texts.forEach((text, i) => rowOf(text).forEach((value, j) => (values[i * length + j] = BigInt(value))));
    return new Tensor("int64", values, dims);
  };
}

/** A decoder's export has inputs for cached keys and values: here they are empty. */
function emptyPast({ name, type, shape }: TensorMetadata, modelPath: string): Feeder {
  const [, heads, , width] = shape;
  if (typeof heads !== "number" || typeof width !== "number" || !(type === "float32" || type === "float16"))
    throw new Error(
      `${modelPath}: ${name} must have numbers of heads and of floats a head; export it without past keys.`,
    );
  const data = type === "float16" ? new Uint16Array(0) : new Float32Array(0);
  return ({ length: texts }) => new Tensor(type as "float32", data as Float32Array, [texts, heads, 0, width]);
}

const tokenVectorNames = ["token_embeddings", "last_hidden_state"];
const otherHeads = /For(?:TokenClassification|MaskedLM|CausalLM|QuestionAnswering|MultipleChoice|PreTraining|NextSentencePrediction|ConditionalGeneration)$|LMHeadModel$/u; // prettier-ignore

function outputOf(
  metadata: readonly Metadata[],
  { task, architecture, modelPath, modules, prompts }: FolderSettings,
): Pick<TextGraph, "output" | "gives"> {
  const outputs = metadata.filter((output): output is TensorMetadata => output.isTensor);
  const names = outputs.map(({ name }) => name);
  const found = (name: string): TensorMetadata | undefined => outputs.find((output) => output.name === name);
  if (task !== "embedding") {
    const output = found("logits") ?? (outputs.length === 1 ? outputs[0] : undefined);
    if (output === undefined) throw new Error(`${modelPath} gives ${names.join(", ")}; one of them must be logits.`);
    checkType(output, modelPath);
    return { output: output.name, gives: "logits" };
  }
  const finished = found("sentence_embedding");
  if (finished !== undefined) {
    const [pooling] = modules;
    if (
      pooling?.type === "pooling" &&
      !pooling.includesPrompt &&
      Object.values(prompts).some((prompt) => prompt !== "")
    )
      throw new Error(
        `${modelPath} pools by itself, and include_prompt is false: export it without sentence_embedding.`,
      );
    checkType(finished, modelPath);
    return { output: finished.name, gives: "finished vectors" };
  }
  // Cached keys and values, and extra layers of some exports.
  const known = tokenVectorNames.map(found).find((output) => output !== undefined);
  const candidates = outputs.filter(({ name }) => !/^(?:present|past_key_values)\b|^pooler_output$/u.test(name));
  const output = known ?? (candidates.length === 1 ? candidates[0] : undefined) ?? (outputs.length === 1 ? outputs[0] : undefined); // prettier-ignore
  const isHead =
    known === undefined && (otherHeads.test(architecture) || names.some((name) => name.endsWith("logits")));
  if (isHead) {
    const what = architecture === "" ? "it" : architecture;
    throw new Error(
      `${modelPath} gives ${names.join(", ")}, and ${what} is no embedding model: export it for feature extraction.`,
    );
  }
  if (output === undefined)
    throw new Error(`${modelPath} gives ${names.join(", ")}: none is named sentence_embedding, token_embeddings or last_hidden_state.`); // prettier-ignore
  checkType(output, modelPath);
  const axes = output.shape.length;
  if (axes !== 2 && axes !== 3) throw new Error(`${modelPath}: ${output.name} has ${axes} axes; 2 or 3 are served.`);
  if (axes === 2 && modules.some(({ type }) => type === "dense"))
    throw new Error(`${modelPath} gives ${output.name}, one vector per text: whether it precedes or follows the Dense module is unknown.`); // prettier-ignore
  return { output: output.name, gives: axes === 2 ? "vectors" : "token vectors" };
}

const servedTypes = ["float32", "float16", "float64", "int8", "uint8"];

function checkType({ name, type }: TensorMetadata, modelPath: string): void {
  if (!servedTypes.includes(type))
    throw new Error(`${modelPath}: ${name} is ${type}; ${servedTypes.join(", ")} are served. Export it with float32.`);
}

/** The numbers of an output, whatever its type, as float32. */
export function floatsOf({ type, data }: Tensor): Float32Array {
  if (type === "float32") return data as Float32Array;
  if (type !== "float16") return new Float32Array(data as Float64Array);
  // Where Node has a Float16Array, the runtime gives one.
  const { buffer, byteOffset, length } = data as Uint16Array;
  return floatsOfHalves(new Uint16Array(buffer, byteOffset, length));
}
