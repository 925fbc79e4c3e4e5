import { embedsTexts } from "../../contract/model-definition.ts";
import type { ServedModel } from "../../models/served-model.ts";
import type { Models } from "../../models/models.ts";
import { tag } from "./request.ts";

const startedAt = new Date().toISOString();

/** The models that Ollama's routes can run. */
export const listOf = ({ all }: Models): object => ({
  models: all
    .filter(({ definition }) => embedsTexts(definition))
    .map(({ name, definition }) => ({
      name: name + tag,
      model: name + tag,
      modified_at: startedAt,
      details: detailsOf(definition),
    })),
});

/** A model of any kind, in the fields of Ollama's `/api/show`. @throws {Problem} 404; 503 while it loads. */
export function shown(name: string, models: Models): object {
  const { definition } = models.describe(name, "model");
  const { input, output } = definition;
  const details = detailsOf(definition);
  return {
    modelfile: "",
    parameters: "",
    template: "",
    modified_at: startedAt,
    details,
    model_info: {
      "general.architecture": "sheaf",
      "general.basename": name,
      ...("maxTokens" in input && input.maxTokens !== undefined ? { "sheaf.context_length": input.maxTokens } : {}),
      ...(output.kind === "vector" ? { "sheaf.embedding_length": output.length } : {}),
    },
    capabilities: embedsTexts(definition) ? ["embedding"] : [],
  };
}

/** Files and sizes of a model are not known here. */
const detailsOf = (definition: ServedModel["definition"]): object => {
  const family = embedsTexts(definition) ? "embedding" : definition.output.kind;
  return { parent_model: "", format: "", family, families: [family], parameter_size: "", quantization_level: "" };
};
