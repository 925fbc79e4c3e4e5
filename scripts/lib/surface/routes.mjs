import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../files.mjs";

const built = (path) => import(`${root}/packages/sheaf-server/dist/${path}`);

/**
 * The headers, and the fields of bodies and successful replies, of every route in /openapi.json: "POST /infer body.input",
 * "POST /infer header x-request-id", "POST /infer 200.output". The server has a folder of models and a key, and so every route.
 */
export async function routeFields() {
  const { paths, components } = await description();
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { parameters = [], requestBody, responses }]) => {
      const route = `${method.toUpperCase()} ${path}`;
      const fields = (place, { content = {} } = {}) =>
        Object.values(content).flatMap(({ schema }) => fieldsIn(schema, `${route} ${place}`, components));
      return [
        ...parameters.filter((parameter) => parameter.in !== "path").map((each) => `${route} ${each.in} ${each.name}`),
        ...fields("body", requestBody),
        // Errors have one form for each family of routes, which its tests hold; their codes are an area of their own.
        ...Object.entries(responses)
          .filter(([status]) => status.startsWith("2"))
          .flatMap(([status, response]) => fields(status, response)),
      ];
    }),
  );
}

async function description() {
  const [{ openApp }, { serverOn }, { defaultSettings }] = await Promise.all(
    ["http/app.js", "server/server.js", "settings/settings.js"].map(built),
  );
  const folder = mkdtempSync(join(tmpdir(), "sheaf-surface-"));
  const settings = { ...defaultSettings, port: 0, logLevel: "silent", apiKey: "key" };
  const server = await serverOn(openApp(settings), {
    models: [],
    settings,
    modelsFolder: { model: folder, settings: {} },
  });
  try {
    const reply = await server.app.inject({ url: "/openapi.json" });
    return reply.json();
  } finally {
    await server.close({ graceMs: 0 });
    rmSync(folder, { recursive: true });
  }
}

/** The fields of a JSON schema, with their places: "body.inputs", "200.data.embedding". */
function fieldsIn(schema, place, components) {
  const { $ref, properties = {}, items, anyOf = [], oneOf = [], allOf = [] } = schema ?? {};
  const inside = (part) => fieldsIn(part, place, components);
  const referred = $ref === undefined ? [] : inside(components.schemas[$ref.split("/").at(-1)]);
  const own = Object.entries(properties).flatMap(([name, property]) => [
    `${place}.${name}`,
    ...fieldsIn(property, `${place}.${name}`, components),
  ]);
  return [...referred, ...own, ...[items, ...anyOf, ...oneOf, ...allOf].filter(Boolean).flatMap(inside)];
}
