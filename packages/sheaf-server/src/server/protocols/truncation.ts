import type { FastifyReply } from "fastify";
import type { Truncate } from "../../http/call-options.ts";
import { Type, type OptionalSchema } from "../../http/schema/json-schema.ts";
import type { ModelInput } from "../../runners/contract/model-spec.ts";
import type { ServedModel } from "../models/served-model.ts";
import { isTruncated } from "../codec/outputs.ts";
import { invalid } from "../../problems/problem.ts";
import { field, integerFrom, kindOf, oneOf, trueOrFalse, type Field, type Kind } from "./fields.ts";

// litellm sends it with every request.
const direction = (allowed: readonly Side[]): Kind<Side> => ({
  read(value, path) {
    const side = typeof value === "string" ? allowed.find((one) => one === value.toLowerCase()) : undefined;
    if (side !== undefined) return side;
    throw invalid(path, allowed.length > 1 ? '"right" or "left"' : '"right": texts are cut at their end', value);
  },
  schema: () => Type.String({ enum: allowed.flatMap((side) => [side, side[0]!.toUpperCase() + side.slice(1)]) }),
});

type Side = "left" | "right";

/** The fields of TEI's routes about texts of too many tokens. */
export const truncation: {
  readonly truncate: Field<boolean | undefined>;
  readonly truncation_direction: Field<Side | undefined>;
} = {
  truncate: field(
    trueOrFalse,
    "Truncate texts that are too long for the model; false refuses them. Default: AUTO_TRUNCATE.",
  ),
  truncation_direction: field(direction(["right"]), "Texts are truncated at the end; no other direction is supported."),
};

/** The same for `/embed`, where a text may also be cut at its start. */
export const truncationOnEitherSide: typeof truncation = {
  truncate: truncation.truncate,
  truncation_direction: field(direction(["right", "left"]), "Side on which texts that are too long are truncated."),
};

const cutWords =
  "Side on which texts that are too long are truncated; NONE refuses them. Default: END, or NONE if AUTO_TRUNCATE is false.";

/** Cohere's field for it. */
export const truncateSide: Field<Exclude<Truncate, boolean> | undefined> = field(
  oneOf("END", "START", "NONE"),
  cutWords,
);

/** NVIDIA's, which has Cohere's words, and Jina's, which is true or false. */
export const truncateSideOrNot: Field<Truncate | undefined> = field(
  kindOf(
    '"END", "START" or "NONE", or true or false',
    (value) => typeof value === "boolean" || value === "END" || value === "START" || value === "NONE",
    Type.Union([Type.String({ enum: ["END", "START", "NONE"] }), Type.Boolean()]),
  ),
  `${cutWords} true is END and false NONE.`,
);

/** Reports in a header how many texts were cut, because few of the imitated APIs have a field for it. */
export function tellTruncated(reply: FastifyReply, outputs: readonly unknown[]): void {
  const count = outputs.filter(isTruncated).length;
  if (count > 0) reply.header(truncatedHeader, String(count));
}

const truncatedHeader = "x-sheaf-truncated";

/** Cohere's `meta.warnings`; undefined if no text was cut. */
export function truncationWarnings(
  outputs: readonly unknown[],
  pathOf: (index: number) => string,
): readonly string[] | undefined {
  const count = outputs.filter(isTruncated).length;
  if (count === 0) return undefined;
  const first = pathOf(outputs.findIndex(isTruncated));
  return [count === 1 ? `${first} was truncated.` : `${count} texts were truncated, the first of them ${first}.`];
}

export const warnings: OptionalSchema = Type.Optional(
  Type.Array(Type.String(), { description: "The texts that were truncated; absent if none was." }),
);

/** A caller's limit in tokens, for `checkTokenLimit`; models cut texts only at their own limit. */
export const tokenLimit: Kind<number> = integerFrom(1, ({ all }) =>
  Type.Integer({ minimum: Math.max(1, ...all.map(({ definition: { input } }) => mostTokens(input) ?? 1)) }),
);

/** vLLM's form of such a limit. */
export const promptTokens: Kind<number | undefined> = {
  read: (value, path) => (value === -1 ? undefined : tokenLimit.read(value, path)),
  schema: (models) => Type.Union([Type.Integer({ enum: [-1] }), tokenLimit.schema(models)]),
};

const mostTokens = (input: ModelInput): number | undefined => ("maxTokens" in input ? input.maxTokens : undefined);

export interface TokenLimit {
  readonly path: string;
  readonly tokens: number;
}

export const limitOf = (tokens: number | undefined, path: string): TokenLimit | undefined =>
  tokens === undefined ? undefined : { path, tokens };

/** Refuses a limit below the model's own, at which texts are cut. @throws {Problem} 422 */
export function checkTokenLimit(limit: TokenLimit | undefined, { definition: { input } }: ServedModel): void {
  if (limit === undefined) return;
  const most = mostTokens(input) ?? Infinity;
  if (limit.tokens >= most) return;
  const expected =
    most === Infinity ? "absent: the model cuts no text" : `at least ${most}, where the model cuts texts`;
  throw invalid(limit.path, expected, limit.tokens);
}
