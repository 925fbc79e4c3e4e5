import { errorHints, fieldsOf } from "../api-client/api-error.ts";
import { wordsOf } from "../api-client/refusals.ts";
import type { EmbeddingsReply } from "./client.ts";

type Body = Readonly<Record<string, unknown>>;

/**
 * Asks an API that refuses `encoding_format`, or answers it with no data, once more without, and remembers it: gateways to other
 * services often have no base64, and some do not take the parameter at all. openai's client then sends base64 by itself, so
 * that the last attempt is "float".
 */
export class EncodingFallback {
  #refused = 0;

  /** `isOther`: the reply is not in the format that the body asks for. */
  async ask<Answer extends { readonly reply: EmbeddingsReply | undefined }>(
    body: Body,
    ask: (body: Body) => Promise<Answer>,
    askedAgain: () => void,
  ): Promise<{ readonly answer: Answer; readonly isOther: boolean }> {
    const { encoding_format: format, ...plain } = body;
    const bodies = [body];
    if (format === "base64") bodies.push(plain, { ...plain, encoding_format: "float" });
    else if (format === "float") bodies.push(plain);
    for (let at = Math.min(this.#refused, bodies.length - 1); ; at++) {
      const isLast = at === bodies.length - 1;
      try {
        const answer = await ask(bodies[at]!);
        const isFound = !isEmpty(answer.reply);
        if (isFound) this.#refused = Math.max(this.#refused, at);
        if (isFound || isLast) return { answer, isOther: at > 0 };
      } catch (error) {
        if (isLast || !isAboutEncoding(error)) throw error;
      }
      askedAgain();
    }
  }
}

const isEmpty = (reply: EmbeddingsReply | undefined): boolean => Array.isArray(reply?.data) && reply.data.length === 0;

function isAboutEncoding(error: unknown): boolean {
  const { status } = errorHints(error);
  if (status !== 400 && status !== 422) return false;
  const { param, reply } = fieldsOf(error);
  return [wordsOf(error).message, param, fieldsOf(reply)["text"]].some((words) =>
    String(words).includes("encoding_format"),
  );
}

/** Numbers as base64 of float32, as APIs send them. */
export function base64Of(embedding: unknown): unknown {
  if (!Array.isArray(embedding)) return embedding;
  const bytes = new Uint8Array(Float32Array.from(embedding as number[]).buffer);
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}
