import { invalid } from "../../../problems/problem.ts";
import { objectOf } from "../../codec/inputs.ts";
import { fieldsOf, flagOf, modelNameOf, withoutNulls, type Fields } from "../fields.ts";
import { truncates, truncationKeys } from "../truncation.ts";

/** A text, or two that are judged together. */
type Sequence = readonly [text: unknown, pair?: unknown];

export interface TextsToPredict {
  readonly name: string | undefined;
  readonly sequences: readonly Sequence[];
  /** Path of a sequence. */
  readonly pathOf: (index: number) => string;
  /** One sequence, whose reply is not in a list. */
  readonly isSingle: boolean;
  readonly isRaw: boolean;
  readonly truncate: boolean;
  /** Most labels of a text; undefined: all. */
  readonly mostLabels: number | undefined;
  /** A request of the Hub's clients, whose reply is a list for each text, also for a single one. */
  readonly isOfHub: boolean;
}

/**
 * `inputs` is a text, a pair `[text, text]`, or a list of `[text]` and `[text, text]`. `parameters` are those of the Hub's
 * clients: `top_k`.
 */
export function readPredict(body: unknown): TextsToPredict {
  const keys = ["inputs", "model", "raw_scores", "parameters", ...truncationKeys];
  const fields = fieldsOf(body, "an object with inputs", keys);
  return {
    ...readInputs(fields["inputs"]),
    name: modelNameOf(fields),
    isRaw: flagOf(fields, "raw_scores", false),
    truncate: truncates(fields),
    mostLabels: readParameters(fields),
    isOfHub: fields["parameters"] !== undefined,
  };
}

function readParameters({ parameters = {} }: Fields): number | undefined {
  const { top_k: most } = objectOf(withoutNulls(parameters), "parameters", "an object with top_k", ["top_k"]);
  if (most === undefined) return undefined;
  if (!Number.isSafeInteger(most) || (most as number) < 1) throw invalid("parameters.top_k", "an integer >= 1", most);
  return most as number;
}

type Inputs = Pick<TextsToPredict, "sequences" | "pathOf" | "isSingle">;

/** A list that begins with a text is one sequence, as TEI reads it. */
function readInputs(inputs: unknown): Inputs {
  if (typeof inputs === "string") return { sequences: [[inputs]], pathOf: () => "inputs", isSingle: true };
  if (!Array.isArray(inputs) || inputs.length === 0) throw invalid("inputs", expected, inputs);
  if (!Array.isArray(inputs[0]))
    return { sequences: [readSequence(inputs, "inputs")], pathOf: () => "inputs", isSingle: true };
  const pathOf = (index: number): string => `inputs[${index}]`;
  return { sequences: inputs.map((sequence, i) => readSequence(sequence, pathOf(i))), pathOf, isSingle: false };
}

const expected = "a text, a pair [text, text], or a list of [text] and [text, text]";

function readSequence(sequence: unknown, path: string): Sequence {
  if (Array.isArray(sequence) && (sequence.length === 1 || sequence.length === 2)) return sequence as [unknown];
  throw invalid(path, "[text] or [text, text]", sequence);
}
