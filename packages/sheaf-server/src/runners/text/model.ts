import { join } from "node:path";
import { BatcherError } from "sheaf";
import { measurePasses, PassCost, runInPasses } from "sheaf/models";
import type { RunContext } from "sheaf/node";
import type { FolderSettings } from "./folder-settings.ts";
import { readJson } from "./read-json.ts";
import { TextTokenizer, type TokenizerFile } from "./tokenizer.ts";
import { floatsOf, textGraph, type TextGraph, type TextTokens } from "./text-graph.ts";
import { normalize, openVectorModules, pool, sigmoid, softmax } from "./vector-modules.ts";
import { sizeFor } from "../onnx/fixed-sizes.ts";
import { doubling } from "../../shared/doubling.ts";
import { openSession, type OnnxSession, type SessionSettings } from "../onnx/session.ts";

export interface TextData extends SessionSettings {
  readonly folder: string;
  readonly settings: FolderSettings;
}

/** A text, with its own prompt or else the folder's default; or a pair of a cross-encoder. */
export type TextItem =
  | string
  | { readonly text: string; readonly prompt?: string | undefined; readonly cut?: "left" | "right" | undefined }
  | { readonly query: string; readonly text: string };

/** The result of one text: its vector, scores by label, or score, as the folder's task has it. */
export interface TextResult {
  readonly vector?: Float32Array;
  readonly scores?: Float32Array;
  /** Classification: before the activation. */
  readonly logits?: Float32Array;
  readonly score?: number;
  /** The input of the activation that gave `score`. */
  readonly logit?: number;
  readonly tokens: number;
  readonly truncated: boolean;
  /** Token count of a truncated text; a lower bound unless `isReadWhole`. */
  readonly textTokens?: number | undefined;
  readonly isReadWhole?: boolean | undefined;
}

export interface LoadedText {
  readonly session: OnnxSession;
  readonly graph: TextGraph;
  /** Dense and Normalize, after pooling. */
  readonly finish: (vector: Float32Array) => Float32Array;
  readonly tokenizer: TextTokenizer;
  readonly settings: FolderSettings;
  /** Lengths in tokens to which texts are padded on WebGPU; empty elsewhere. */
  readonly fixedLengths: readonly number[];
  /** Cost of a pass by texts and tokens, learned from each. */
  readonly cost: Pick<PassCost, "of" | "learn">;
  readonly maxBatchSize: number;
}

interface EncodedText extends TextTokens, Pick<TextResult, "truncated" | "textTokens" | "isReadWhole"> {
  /** The first token that is pooled: the one after a prompt that is not pooled, else 0. */
  readonly from: number;
}

/** The most padded tokens of one pass: a bound on its memory. */
const maxPaddedTokens = 16_384;

const shortestFixedLength = 16;

/** @throws {Error} the tokenizer or the model is broken, or asks for an input that no tokenizer gives. */
export async function loadTextModel({ folder: _folder, settings, ...session }: TextData): Promise<LoadedText> {
  const tokenizer = await readTokenizer(settings);
  const opened = await openSession(settings.modelPath, session);
  const graph = textGraph(opened, settings);
  const { fixedLength } = graph;
  const maxTokens = Math.min(settings.maxTokens, fixedLength ?? Infinity);
  const fixedLengths =
    fixedLength !== undefined
      ? [fixedLength]
      : opened.fixedSizes.length === 0
        ? []
        : doubling(Math.min(shortestFixedLength, maxTokens), maxTokens);
  const { maxBatchSize = 32 } = session;
  return {
    session: opened,
    graph,
    finish: openVectorModules(settings.modules),
    tokenizer,
    settings: { ...settings, maxTokens },
    fixedLengths,
    cost: costOn(opened),
    maxBatchSize: graph.isOneByOne ? 1 : maxBatchSize,
  };
}

/** The cost of passes by the sizes that the device runs. */
function costOn({ fixedSizes }: OnnxSession): LoadedText["cost"] {
  const cost = new PassCost();
  if (fixedSizes.length === 0) return cost;
  return {
    of: (size, length) => cost.of(sizeFor(fixedSizes, size), length),
    learn: (size, length, ms) => cost.learn(sizeFor(fixedSizes, size), length, ms),
  };
}

/** Measures passes, and compiles every shape on devices that need that before the first text. */
export async function warmUpTexts(model: LoadedText): Promise<void> {
  const { session, settings, fixedLengths, cost, maxBatchSize } = model;
  const pass = (size: number, length: number): Promise<TextResult[]> => {
    const ids = new Array<number>(length).fill(settings.padId);
    const text: EncodedText = { ids, types: ids.map(() => 0), truncated: false, from: 0 };
    return runOnce(
      Array.from({ length: size }, () => text),
      model,
    );
  };
  for (const length of fixedLengths) {
    const most = sizeFor(session.fixedSizes, Math.max(1, Math.floor(maxPaddedTokens / length)));
    for (const size of session.fixedSizes) if (size <= most) await pass(size, length);
  }
  await measurePasses(cost, pass, { maxLength: settings.maxTokens, maxSize: maxBatchSize });
}

async function readTokenizer({ root, isLowercased, truncationSide }: FolderSettings): Promise<TextTokenizer> {
  const file = readJson(root, "tokenizer.json") as TokenizerFile;
  try {
    return await TextTokenizer.open(file, { isLowercased, truncationSide });
  } catch (error) {
    throw new Error(`${join(root, "tokenizer.json")}: ${(error as Error).message}`, { cause: error });
  }
}

/** Texts of similar length run in one pass and are answered when it ends; see `runInPasses`. */
export async function runTexts(
  items: readonly TextItem[],
  model: LoadedText,
  { answer, signal }: Partial<Pick<RunContext, "answer" | "signal">> = {},
): Promise<(TextResult | Error)[]> {
  const encoded = await encodeAll(items, model, signal);
  const places: number[] = [];
  const texts: EncodedText[] = [];
  encoded.forEach((text, place) => {
    if (text instanceof Error) return;
    places.push(place);
    texts.push(text);
  });
  const results = await runInPasses(texts, {
    lengths: texts.map(({ ids }) => lengthOf(ids, model)),
    run: (pass) => runOnce(pass, model),
    cost: model.cost,
    answer: answer && ((index, result) => answer(places[index]!, result)),
    signal,
    maxPaddedLength: maxPaddedTokens,
  });
  const all: (TextResult | Error)[] = encoded.map((text) => (text instanceof Error ? text : notRun));
  results.forEach((result, index) => (all[places[index]!] = result));
  return all;
}

const notRun = new Error("The text was not run.");

/** Characters tokenised between checks for callers that have gone; also bounds memory. */
const encodeChars = 100_000;

async function encodeAll(
  items: readonly TextItem[],
  model: LoadedText,
  signal: AbortSignal | undefined,
): Promise<(EncodedText | Error)[]> {
  const encoded: (EncodedText | Error)[] = [];
  while (encoded.length < items.length) {
    if (signal?.aborted === true) throw signal.reason;
    let end = encoded.length;
    for (let chars = 0; end < items.length && chars < encodeChars; end++) chars += textOf(items[end]!).length;
    encoded.push(...(await encode(items.slice(encoded.length, end), model)));
  }
  return encoded;
}

const textOf = (item: TextItem): string => (typeof item === "string" ? item : item.text);

/** All texts in one run, with any amount of padding: the self-test compares it. @throws {Error} one cannot be read. */
export async function runTogether(items: readonly TextItem[], model: LoadedText): Promise<TextResult[]> {
  const texts = (await encode(items, model)).map((text) => {
    if (text instanceof Error) throw text;
    return text;
  });
  return runOnce(texts, model);
}

async function encode(
  items: readonly TextItem[],
  { tokenizer, settings }: LoadedText,
): Promise<(EncodedText | Error)[]> {
  const { maxTokens, padId, prompts, defaultPrompt, hasTypes, modules } = settings;
  const [pooling] = modules;
  const own = defaultPrompt === undefined ? "" : prompts[defaultPrompt]!;
  const asked = items.map((item) => {
    if (typeof item !== "string" && "query" in item) return { ...item, prompt: "" };
    const { text, prompt = own, cut } = typeof item === "string" ? { text: item } : item;
    return { text: prompt + text, prompt, side: cut };
  });
  const isLeftOut = pooling?.type === "pooling" && !pooling.includesPrompt;
  const leading = await tokenizer.leadingTokens(isLeftOut ? asked.flatMap(({ prompt }) => prompt || []) : []);
  const encoded = await tokenizer.encode(asked, maxTokens);
  return encoded.map((encoding, i) => {
    if (encoding instanceof RangeError) return new BatcherError("INVALID_INPUT", `query ${encoding.message}.`);
    if (encoding instanceof Error)
      return new BatcherError("INVALID_INPUT", `The text cannot be read: ${encoding.message}.`);
    const { ids } = encoding;
    if (ids.length === 0) return { ...encoding, ids: [padId], types: [0], from: 0 };
    // At least one token is pooled, even if only the prompt fits.
    const from = Math.min(leading.get(asked[i]!.prompt) ?? 0, ids.length - 1);
    return { ...encoding, types: hasTypes ? encoding.types : encoding.types.map(() => 0), from };
  });
}

/** The size of a text that runs alone. */
const lengthOf = ({ length }: readonly number[], { fixedLengths }: LoadedText): number =>
  fixedLengths.length === 0 ? length : sizeFor(fixedLengths, length);

async function runOnce(texts: readonly EncodedText[], model: LoadedText): Promise<TextResult[]> {
  if (!model.graph.isOneByOne) return runTensors(texts, model);
  const results: TextResult[] = [];
  for (const text of texts) results.push(...(await runTensors([text], model)));
  return results;
}

async function runTensors(texts: readonly EncodedText[], model: LoadedText): Promise<TextResult[]> {
  const { session, graph, settings } = model;
  const longest = texts.reduce((most, { ids }) => Math.max(most, lengthOf(ids, model)), 0);
  const output = (await session.run(graph.feedsOf(texts, longest), [graph.output]))[graph.output]!;
  const { dims } = output;
  const axes = graph.gives === "token vectors" ? [texts.length, longest] : [texts.length];
  if (dims.length !== axes.length + 1 || axes.some((axis, i) => dims[i] !== axis))
    throw new Error(`${graph.output} has the shape [${dims.join()}] for ${texts.length} texts of ${longest} tokens.`);
  const values = floatsOf(output);
  const width = dims.at(-1)!;
  return texts.map((text, i) => {
    const { ids, truncated, from } = text;
    const size = values.length / texts.length;
    // A copy, so that a result does not keep the whole output alive; pooling makes its own.
    const row =
      graph.gives === "token vectors"
        ? values.subarray(i * size, (i + 1) * size)
        : values.slice(i * size, (i + 1) * size);
    const result =
      settings.task === "embedding"
        ? { vector: vectorOf(row, width, from, ids.length, model) }
        : scoresOf(row, settings);
    const all = { ...result, tokens: ids.length, truncated };
    return truncated ? { ...all, textTokens: text.textTokens, isReadWhole: text.isReadWhole } : all;
  });
}

function vectorOf(row: Float32Array, width: number, from: number, to: number, model: LoadedText): Float32Array {
  const { graph, finish, settings } = model;
  const { modules } = settings;
  // A graph with built-in modules may have been exported without the last one.
  if (graph.gives === "finished vectors") return modules.at(-1)?.type === "normalize" ? normalize(row) : row;
  const [pooling] = modules;
  const isPooled = graph.gives === "vectors" || pooling?.type !== "pooling";
  return finish(isPooled ? row : pool({ states: row, width, from, to }, pooling.modes));
}

const activations = {
  softmax,
  identity: (logits: Float32Array) => logits,
  sigmoid: (logits: Float32Array) => logits.map(sigmoid),
};

function scoresOf(logits: Float32Array, { task, activation }: FolderSettings): Partial<TextResult> {
  if (task === "rerank" && logits.length !== 1) throw new Error(`The model gives ${logits.length} scores for 1 label.`);
  const scores = activations[activation](logits);
  return task === "rerank" ? { score: scores[0]!, logit: logits[0]! } : { scores, logits };
}
