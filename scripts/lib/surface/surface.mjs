// Everything public, for test/fixtures/public-surface.json: from the code, or from a page of the reference that a test holds to it.
import { readFileSync } from "node:fs";
import { commandFlags } from "../commands.mjs";
import { root } from "../files.mjs";
import { tableRows } from "../markdown.mjs";
import { entryPoints } from "../public-exports.mjs";
import { errorCodes, propertiesOf, serverVariables } from "../sources.mjs";
import { publicNames } from "./names.mjs";
import { pythonNames } from "./python-names.mjs";
import { routeFields } from "./routes.mjs";

const read = (path) => readFileSync(`${root}/${path}`, "utf8");
const page = (name) => read(`docs/reference/${name}.md`);
const built = (path) => import(`${root}/packages/${path.replace("/", "/dist/")}`);

/** The public surface: for each area its names, sorted, each with its kind, default or version as a text. Needs a build. */
export async function publicSurface() {
  const areas = {
    name: publicNames(["sheaf", "sheaf-server"].flatMap(entryPoints)),
    "Python name": pythonNames(read("packages/sheaf/python/sheaf_worker.py")),
    setting: entriesOf(await serverVariables()),
    flag: flagsOf(await commandFlags()),
    route: { ...routes(), ...Object.fromEntries((await routeFields()).map((name) => [name, "field"])) },
    "error code": Object.fromEntries(errorCodes().map((code) => [code, "code"])),
    "HTTP error": entriesOf((await built("sheaf-server/problems/problem.js")).statusOfCode),
    "gRPC method": await grpcMethods(),
    metric: Object.fromEntries(tableRows(page("metrics"), "metric").map(([name, type]) => [unquoted(name), type])),
    wire: await wire(),
    runtime: runtimes(),
  };
  return Object.fromEntries(Object.entries(areas).map(([area, names]) => [area, sorted(names)]));
}

const sorted = (names) => Object.fromEntries(Object.entries(names).sort(([left], [right]) => (left < right ? -1 : 1)));
const unquoted = (cell) => cell.replaceAll("`", "");
/** Names with their values as texts; "none" without one. */
const entriesOf = (values) =>
  Object.fromEntries(
    [...(values instanceof Map ? values : Object.entries(values))].map(([name, value]) => [name, `${value ?? "none"}`]),
  );

/** Also those that /openapi.json leaves out, such as the page. */
const routes = () =>
  Object.fromEntries(
    tableRows(page("routes"), "route")
      .map(([cell]) => unquoted(cell))
      .filter((name) => /^(?:GET|POST) /.test(name))
      .map((name) => [name, "route"]),
  );

/** Every command, and every flag that is its own; the flags of settings follow from the settings. */
function flagsOf(commands) {
  return Object.fromEntries(
    [...commands].flatMap(([name, { flags }]) => [
      [`sheaf ${name}`, "command"],
      ...Object.entries(entriesOf(flags)).map(([flag, value]) => [`sheaf ${name} ${flag}`, value]),
    ]),
  );
}

async function grpcMethods() {
  const { service, serviceName } = await built("sheaf-server/server/protocols/grpc/definition.js");
  const stream = (isStream, type) => (isStream ? `stream ${type}` : type);
  return Object.fromEntries(
    Object.entries(service).map(([name, { requestStream, responseStream, requestType, responseType }]) => [
      `${serviceName}/${name}`,
      `${stream(requestStream, requestType.type.name)} → ${stream(responseStream, responseType.type.name)}`,
    ]),
  );
}

/** The number of the worker protocol; the fields of the messages over HTTP and NATS, which have none, and NATS' subjects. */
async function wire() {
  const [protocol] = /(?<=^const version = )\d+(?=;$)/m.exec(read("packages/sheaf/src/node/command/protocol.ts"));
  const { requestBody } = await built("sheaf/adapters/http/wire.js");
  const body = JSON.parse(requestBody([{ json: "1", timeoutMs: 1, priority: "bulk" }]));
  const { namesOf } = await built("sheaf/adapters/nats/queue/topology.js");
  // The others are reports of NATS itself.
  const isOurs = (subject) => !subject.startsWith("$JS.");
  const subjects = Object.entries(namesOf({ queue: "q", durability: "file" }))
    .map(([name, subject]) => [`NATS ${name}`, typeof subject === "function" ? subject("{1}", "{2}") : subject])
    .filter(([, subject]) => isOurs(subject));
  return {
    "worker protocol": `version ${protocol}`,
    ...Object.fromEntries(Object.keys(body).map((field) => [`HTTP request.${field}`, "field"])),
    ...fieldsOf("HTTP", "adapters/http/wire.ts", "WireError"),
    ...fieldsOf("NATS", "adapters/nats/wire/envelope.ts", "RequestHead"),
    ...fieldsOf("NATS", "adapters/nats/wire/envelope.ts", "ReplyHead"),
    ...fieldsOf("NATS", "adapters/nats/queue/worker-registry.ts", "WorkerInfo"),
    ...Object.fromEntries(subjects),
  };
}

const fieldsOf = (protocol, file, type) =>
  Object.fromEntries(
    propertiesOf(`sheaf/src/${file}`, type).map(({ name, isOptional }) => [
      `${protocol} ${type}.${name}`,
      isOptional ? "optional" : "required",
    ]),
  );

/** The versions of Node that both packages' `engines` allow. */
function runtimes() {
  return Object.fromEntries(
    ["sheaf", "sheaf-server"].flatMap((name) => {
      const { engines } = JSON.parse(read(`packages/${name}/package.json`));
      return engines.node.split(" || ").map((range) => [`${name} on Node ${range}`, "engine"]);
    }),
  );
}
