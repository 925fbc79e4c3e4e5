import type { FastifyInstance, FastifyRequest } from "fastify";
import { objectOf } from "../../codec/inputs.ts";
import { jsonOf } from "../../../http/bodies/body.ts";
import { invalid, Problem } from "../../../problems/problem.ts";
import type { Repository } from "../../models/models.ts";
import type { Settings } from "../../../settings/settings.ts";
import * as schemas from "./schemas.ts";

const actions = ["load", "unload"] as const;
const pathOf = (action: (typeof actions)[number]): string => `/v2/repository/models/:model/${action}`;

export const repositoryPaths: readonly string[] = actions.map(pathOf);

/**
 * Load and unload of Triton's model repository extension, for a folder of models:
 * https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_model_repository.md
 */
export function repositoryRoutes(v2: FastifyInstance, repository: Repository, settings: Settings): void {
  for (const action of actions) {
    v2.post(pathOf(action), { schema: schemas.repositoryAction(action) }, async (request) => {
      readParameters(request, action, settings);
      const { model } = request.params as { readonly model: string };
      await patiently(request, () => repository[action](model));
      return {};
    });
  }
}

/** A browser sends no JSON to another site without asking: a page somewhere must not load a model here. */
function readParameters({ headers, body }: FastifyRequest, action: "load" | "unload", settings: Settings): void {
  const type = headers["content-type"];
  if (type === undefined || !/^application\/json\s*(?:;|$)/iu.test(type))
    throw new Problem("UNSUPPORTED_MEDIA_TYPE", "Send the header content-type: application/json; the body may be {}.");
  if (!Buffer.isBuffer(body) || body.length === 0) return;
  const { parameters = {} } = objectOf(jsonOf(body, settings), "", "an object", ["parameters"]);
  if (typeof parameters !== "object" || parameters === null || Array.isArray(parameters))
    throw invalid("parameters", "an object", parameters);
  for (const [name, value] of Object.entries(parameters)) {
    // tritonclient always sends it.
    if (action === "unload" && name === "unload_dependents" && value === false) continue;
    const message = `parameters.${name.slice(0, 100)} is not supported: the files in the folder define the model.`;
    throw new Problem("INVALID_INPUT", message, { param: `parameters.${name.slice(0, 100)}` });
  }
}

/** A model may load for longer than a connection may be silent. */
async function patiently(request: FastifyRequest, work: () => Promise<void>): Promise<void> {
  const { socket } = request.raw;
  const { timeout } = socket;
  socket.setTimeout(0);
  try {
    await work();
  } finally {
    if (timeout !== undefined) socket.setTimeout(timeout);
  }
}
