import type { TextsToEmbed } from "../embed-texts.ts";
import { fieldsOf, flagOf, modelNameOf } from "../fields.ts";
import { truncates, truncationKeys } from "../truncation.ts";

const keys = ["inputs", "model", "normalize", "dimensions", ...truncationKeys];

export function readEmbed(body: unknown): TextsToEmbed {
  const fields = fieldsOf(body, "an object with inputs", keys);
  return {
    name: modelNameOf(fields),
    texts: fields["inputs"],
    path: "inputs",
    dimensions: fields["dimensions"],
    refuseTruncated: truncates(fields) ? undefined : "false",
    isUnit: flagOf(fields, "normalize", true),
  };
}
