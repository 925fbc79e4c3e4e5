import type { FastifyInstance, FastifyRequest } from "fastify";
import { Type } from "../../../http/schema/json-schema.ts";
import { json, type RouteSchema } from "../../../http/schema/route-schema.ts";
import { objectAt } from "../../codec/inputs.ts";
import { jsonOf } from "../../../http/bodies/body.ts";
import { Problem } from "../../../problems/problem.ts";
import type { Models, Repository } from "../../models/models.ts";
import { closedObject, kindOf, optional, readFields, schemaOfFields, type Fields, type Kind } from "../fields.ts";
import { error, errors, tags } from "./schemas.ts";

const actions = ["load", "unload"] as const;
type Action = (typeof actions)[number];
const pathOf = (action: Action): string => `/v2/repository/models/:model/${action}`;

export const repositoryPaths: readonly string[] = actions.map(pathOf);

/**
 * Load and unload of Triton's model repository extension, for a folder of models:
 * https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_model_repository.md
 */
export function repositoryRoutes(v2: FastifyInstance, models: Models, repository: Repository): void {
  for (const action of actions) {
    v2.post(pathOf(action), { schema: actionSchema(action, models) }, async (request) => {
      readParameters(request, action);
      const { model } = request.params as { readonly model: string };
      await patiently(request, () => repository[action](model));
      return {};
    });
  }
}

// tritonclient always sends it.
const dependents = optional(
  kindOf("false: no model depends on another", (value) => value === false, Type.Boolean({ enum: [false] })),
);
const bodies = {
  load: closedObject("an object", { parameters: optional(parametersOf({})) }),
  unload: closedObject("an object", { parameters: optional(parametersOf({ unload_dependents: dependents })) }),
};

/** Parameters of an action: the files of a folder define its model, and no caller does. */
function parametersOf(rows: Fields): Kind<unknown> {
  return {
    read(value, path) {
      const given = objectAt(value, path, "an object");
      const unknown = Object.keys(given)
        .find((name) => !Object.hasOwn(rows, name))
        ?.slice(0, 100);
      if (unknown === undefined) return readFields(rows, given, path);
      const message = `${path}.${unknown} is not supported: the files in the folder define the model.`;
      throw new Problem("INVALID_INPUT", message, { param: `${path}.${unknown}` });
    },
    schema: (models) => schemaOfFields(rows, models, false),
  };
}

/** Requires JSON, which a browser does not send to another site without a preflight: no foreign page may load a model. */
function readParameters({ headers, body }: FastifyRequest, action: Action): void {
  const type = headers["content-type"];
  if (type === undefined || !/^application\/json\s*(?:;|$)/iu.test(type))
    throw new Problem("UNSUPPORTED_MEDIA_TYPE", "Send the header content-type: application/json; the body may be {}.");
  if (Buffer.isBuffer(body) && body.length > 0) bodies[action].read(jsonOf(body), "");
}

const actionSchema = (action: Action, models: Models): RouteSchema => ({
  summary: action === "load" ? "Load a model from the folder of models" : "Unload a model",
  description:
    action === "load"
      ? "Loads the model, or its new version while the previous one serves, and answers once new requests go to it. Accepts no parameters."
      : "Answers once the model has finished its requests and freed its memory. Accepts no parameters.",
  tags,
  operationId: action === "load" ? "repositoryLoad" : "repositoryUnload",
  params: Type.Object({ model: Type.String({ description: "Name of the model in the folder." }) }),
  body: bodies[action].schema(models),
  response: {
    200: json("The model is loaded or unloaded.", Type.Object({})),
    400: errors[400],
    404: json("The folder has no such model.", error),
    413: errors[413],
    415: json("The body is not application/json.", error),
    422: json("A parameter was given, or the model did not load; the message has the reason.", error),
    503: errors[503],
  },
});

/** Loading a model may take longer than the timeout of an idle connection. */
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
