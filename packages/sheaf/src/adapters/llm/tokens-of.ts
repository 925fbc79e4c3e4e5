import { fieldsOf } from "../api-client/api-error.ts";
import { estimateTokens } from "../api-client/tokens/tokens.ts";

/** Tokens of one call. */
export interface TokenUsage {
  readonly input?: number | undefined;
  readonly output?: number | undefined;
}

/** An image, a sound or a document, as encoded text or bytes: its size says little of its tokens. */
const attachmentTokens = 1000;
/** Encoded text has no space in so many characters. */
const spaceless = 2000;
const deepest = 64;

/** What a request's texts hold, and the longest of them, which tells the kind of text. */
export interface InputEstimate {
  readonly tokens: number;
  readonly longest: string;
}

/** A request as the AI SDK's middleware has it is inside of `params`. */
const paramsOf = (request: unknown): Readonly<Record<string, unknown>> => {
  const fields = fieldsOf(request);
  return { ...fields, ...fieldsOf(fields["params"]) };
};

const fieldsWithInput = ["messages", "input", "prompt", "system", "instructions", "tools", "functions"];

/** About how many tokens a request of any API has: those of each text in the fields that a model reads. */
export function inputOf(request: unknown): InputEstimate {
  let tokens = 0;
  let longest = "";
  const read = (value: unknown, depth: number): void => {
    if (typeof value === "string") {
      if (value.length > longest.length) longest = value;
      const isEncoded = value.length > spaceless && !/\s/.test(value.slice(0, spaceless));
      tokens += isEncoded ? attachmentTokens : estimateTokens(value);
    } else if (ArrayBuffer.isView(value)) tokens += attachmentTokens;
    else if (typeof value === "object" && value !== null && depth < deepest)
      for (const inner of Object.values(value)) read(inner, depth + 1);
  };
  if (typeof request === "string") read(request, 0);
  const fields = paramsOf(request);
  for (const field of fieldsWithInput) read(fields[field], 0);
  return { tokens: Math.max(1, tokens), longest };
}

const fieldsWithMost = ["max_completion_tokens", "max_output_tokens", "max_tokens", "maxOutputTokens"];

/** The most that a request allows its answers; undefined where it sets no limit. */
export function mostOutputOf(request: unknown): number | undefined {
  const fields = paramsOf(request);
  const most = fieldsWithMost.map((field) => fields[field]).find((value) => isCount(value));
  const answers = isCount(fields["n"]) ? Math.max(1, fields["n"]) : 1;
  return most === undefined ? undefined : most * answers;
}

/**
 * The provider's count in a reply, or in a chunk of a stream: `usage` of OpenAI's and Anthropic's APIs and of the AI SDK, also inside
 * of `response`, `message` or `data`. Anthropic's limits count tokens written to the cache, and not those read from it.
 */
export function usageIn(value: unknown): TokenUsage {
  const outer = fieldsOf(value);
  for (const holder of [outer, ...["response", "message", "data"].map((name) => fieldsOf(outer[name]))]) {
    const usage = fieldsOf(holder["usage"]);
    const input = countOf(usage["prompt_tokens"] ?? usage["input_tokens"] ?? usage["inputTokens"]);
    const output = countOf(usage["completion_tokens"] ?? usage["output_tokens"] ?? usage["outputTokens"]);
    const written = countOf(usage["cache_creation_input_tokens"]) ?? 0;
    if (input !== undefined || output !== undefined) return { input: input && input + written, output };
  }
  return {};
}

/** About how many tokens of an answer a chunk of a stream holds. */
export function outputIn(chunk: unknown): number {
  const { delta, choices, text } = fieldsOf(chunk);
  let tokens = 0;
  const read = (value: unknown): void => {
    if (typeof value === "string" && value !== "") tokens += estimateTokens(value);
  };
  for (const holder of [
    delta,
    text,
    ...(Array.isArray(choices)
      ? (choices as unknown[]).map((each) => fieldsOf(each)["delta"] ?? fieldsOf(each)["text"])
      : []),
  ]) {
    read(holder);
    for (const name of ["content", "text", "thinking", "partial_json", "reasoning_content"])
      read(fieldsOf(holder)[name]);
  }
  return tokens;
}

const isCount = (value: unknown): value is number => typeof value === "number" && value >= 0 && value < Infinity;

/** The AI SDK's counts are objects with a `total`. */
function countOf(value: unknown): number | undefined {
  const count = typeof value === "object" ? fieldsOf(value)["total"] : value;
  return isCount(count) ? count : undefined;
}
