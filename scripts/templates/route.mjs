const plugin = "packages/sheaf-server/src/server/plugin.ts";
const page = "docs/reference/routes.md";

/** A route of the server that runs a model: `npm run new -- route similarity` makes `POST /similarity`. */
export function route({ name, camel }) {
  const source = `packages/sheaf-server/src/server/protocols/${name}.ts`;
  const test = `packages/sheaf-server/test/server/${name}.test.ts`;
  return {
    created: {
      [source]: `import type { FastifyInstance } from "fastify";
import { jsonOf } from "../../http/bodies/body.ts";
import { callOptionsOf, inferenceHeaders } from "../../http/call-options.ts";
import { Type } from "../../http/schema/json-schema.ts";
import { described, json, problemResponses, type RouteSchema } from "../../http/schema/route-schema.ts";
import { itemSchema } from "../codec/inputs.ts";
import type { Models } from "../models/models.ts";
import { object, readLater, required } from "./fields.ts";
import { inferOne } from "./requests.ts";

/** \`POST /${name}\`: say what it answers, and whose protocol it is. */
export function ${camel}Route(app: FastifyInstance, models: Models): void {
  app.post(
    "/${name}",
    described(() => ${camel}Schema(models)),
    async (request) => {
      const model = models.take(undefined, "model");
      const { input } = body.read(jsonOf(request.body, models.settings), "");
      const served = await inferOne(model, model.parse(input, "input"), callOptionsOf(request, model.settings));
      // The reply is made of served.value; codec/outputs.ts reads vectors and scores.
      return { batch_size: served.batchSize };
    },
  );
}

/** A line for each field: how it is read, and what /openapi.json says. fields.ts has the usual kinds. */
const body = object("an object with input", {
  input: required(
    readLater(({ unnamed: [first], settings }) => (first ? itemSchema(first.definition.input, settings) : {})),
    "What the model takes.",
  ),
});

const ${camel}Schema = (models: Models): RouteSchema => ({
  summary: "Say what it does in a few words",
  tags: ["inference"],
  operationId: "${camel}",
  headers: inferenceHeaders(models.settings),
  body: body.schema(models),
  response: { 200: json("The result.", Type.Object({ output: Type.Unknown() })), ...problemResponses },
});
`,
      [test]: `import assert from "node:assert/strict";
import { test } from "node:test";
import { doubling, serving } from "./serving.js";

test("/${name} answers with the model's output", async (t) => {
  const { post } = await serving(t, [doubling()]);
  const { status, json } = await post("/${name}", { input: [1, 2, 3] });
  assert.deepEqual([status, json], [200, { output: [2, 4, 6] }]);
});

test("/${name} refuses a wrong body with its path", async (t) => {
  const { post } = await serving(t, [doubling()]);
  const { status, json } = await post("/${name}", { input: "three" });
  assert.deepEqual([status, json.error.param], [422, "input"]);
});
`,
    },
    changed: {
      [plugin]: (text) =>
        text
          .replace(/(?=import \{ rerankRoutes \} from)/, `import { ${camel}Route } from "./protocols/${name}.ts";\n`) // prettier-ignore
          .replace(/( +)rerankRoutes\(app, models\);\n/, `$&$1${camel}Route(app, models);\n`),
      [page]: (text) =>
        text
          .replace(/\| `POST \/rerank` .*\n/, `$&| \`POST /${name}\` | Say what it answers. |\n`)
          .replace("\n## `/v2`\n", `\n## \`/${name}\`\n\nSay what goes in and what comes out.\n\n## \`/v2\`\n`),
    },
    next: [
      `Write the route in ${source}: its fields, the model, the reply; /openapi.json shows the fields by itself.`,
      `Say in ${test} what a client sees, wrong bodies too: npm test -- server/${name}`,
      `Describe it in ${page}; npm test -- documentation compares the routes both ways.`,
      "Try a real client: integration/clients.test.mjs runs those of other protocols.",
      "node scripts/record.mjs surface records the new public names: read the diff.",
    ],
  };
}
