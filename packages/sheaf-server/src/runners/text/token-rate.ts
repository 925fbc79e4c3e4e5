import type { CommonSpec } from "../contract/model-spec.ts";

/**
 * Estimates a text's tokens from its characters, learned from results that report token counts. Characters beyond ASCII count
 * separately, by their extra bytes: English has about 5 characters a token, code 3.6, Chinese 1.1.
 *
 * Each result moves both rates towards its own count (normalised least mean squares), so that they follow a change of language within
 * a few dozen texts.
 */
export class TokenRate {
  #perCharacter = 1 / 3;
  #perFurtherByte = 1 / 4;

  /** Without special tokens. */
  of(text: string): number {
    const { length } = text;
    return this.#perCharacter * length + this.#perFurtherByte * (Buffer.byteLength(text) - length);
  }

  learn(text: string, tokens: number): void {
    const { length } = text;
    if (length === 0) return;
    const further = Buffer.byteLength(text) - length;
    const error = (gain * (tokens - this.of(text))) / (length ** 2 + further ** 2);
    this.#perCharacter = Math.max(0, this.#perCharacter + error * length);
    this.#perFurtherByte = Math.max(0, this.#perFurtherByte + error * further);
  }
}

/** Averages over about twenty texts, because rates differ by a quarter between texts of one language. */
const gain = 0.05;

/**
 * Characters of a long text whose tokenising costs at most about what a token costs in a small encoder, 100 µs. A text that is cut at
 * its start is read to its end.
 */
const charactersPerToken = { right: 400, left: 100 };

interface Reading {
  readonly maxTokens: number;
  /** Special tokens around every text. */
  readonly ownTokens: number;
  /** The default side of truncation. */
  readonly side: "left" | "right";
}

/** Tokens by the learned rates, plus the cost of tokenising; the worker counts exactly. */
export function textWeights({ maxTokens, ownTokens, side }: Reading): Pick<CommonSpec, "weigh" | "learnWeight"> {
  const rate = new TokenRate();
  const textOf = (item: unknown): string => {
    if (typeof item === "string") return item;
    const {
      query = "",
      prompt = "",
      text,
    } = item as Readonly<Partial<Record<"query" | "prompt", string>>> & {
      readonly text: string;
    };
    return query + prompt + text;
  };
  return {
    weigh: (item) => {
      const text = textOf(item);
      const { cut = side } = (typeof item === "string" ? {} : item) as { readonly cut?: typeof side };
      const reading = Math.floor(text.length / charactersPerToken[cut]);
      return Math.min(maxTokens, Math.ceil(rate.of(text)) + ownTokens) + reading;
    },
    learnWeight: (item, result) => {
      const { tokens, truncated } = result as { readonly tokens?: number; readonly truncated?: boolean };
      if (tokens !== undefined && truncated === false) rate.learn(textOf(item), tokens - ownTokens);
    },
  };
}
