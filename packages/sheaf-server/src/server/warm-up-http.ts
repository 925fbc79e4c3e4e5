import { once } from "node:events";
import type { IncomingMessage, Server } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { answerProblems, openApp } from "../http/app.ts";
import { showSchemasOnly, takeJsonAsBytes } from "../http/bodies/body.ts";
import { ServedModel } from "./models/served-model.ts";
import type { ModelDefinition } from "./contract/model-definition.ts";
import { Models } from "./models/models.ts";
import { inferRoutes } from "./protocols/infer.ts";
import { kserveRoutes } from "./protocols/kserve/routes.ts";
import { RequestMetrics } from "../observe/request-metrics.ts";
import { isTraced } from "../observe/tracing.ts";
import type { Settings } from "../settings/settings.ts";
import { InFlightReplies } from "../http/lifecycle/in-flight-replies.ts";
import { roleOf } from "../settings/role.ts";

/** Requests after which V8 has compiled most of the path: 0.8 s of a core. */
const mostRequests = 3000;
const callers = 8;
const requestsPerConnection = 12;
const length = 256;

const echo: ModelDefinition = {
  name: "warm-up",
  input: { kind: "floats", length },
  output: { kind: "vector", length },
  run: (items: readonly Float32Array[]) => items,
};

/**
 * Sends requests to itself, so that V8 has compiled the request code before the first real one: the first few thousand take several
 * times the CPU time of later ones. Ends early when `server` gets a request for work, or closes. It uses an app and a model of its
 * own on a free loopback port, so these requests appear in no log, metric or trace. Does nothing with WARMUP_BATCHES=0 or in a fleet
 * worker, whose items do not come over HTTP.
 */
export async function warmUpHttp(settings: Settings, server: Server): Promise<void> {
  if (settings.warmupBatches === 0 || roleOf(settings) === "worker" || isTraced()) return;
  let left = mostRequests;
  whenUsed(server, () => (left = 0));
  const own: Settings = { ...settings, logLevel: "silent", natsUrl: undefined };
  const app = openApp(own);
  const models = new Models([echo], own, (definition) => new ServedModel(definition, own));
  new InFlightReplies(app).cutUnread(app);
  // In a plugin, as in the real server: Fastify creates separate request and reply classes for each plugin.
  await app.register(async (routes) => {
    takeJsonAsBytes(routes);
    showSchemasOnly(routes);
    answerProblems(routes, models);
    new RequestMetrics().count(routes);
    inferRoutes(routes, models);
    await kserveRoutes(routes, models);
  });
  try {
    await models.ready();
    // A front shares no other port.
    await app.listen({ host: "127.0.0.1", port: 0, exclusive: true });
    const { port } = app.server.address() as AddressInfo;
    const another = (): boolean => left-- > 0;
    await Promise.all(Array.from({ length: callers }, () => ask(port, another)));
  } finally {
    await models.close(0);
    await app.close();
  }
}

/** Calls `listener` once: on the first request that is not a GET (probes and pages use GET), or when the server closes. */
function whenUsed(server: Server, listener: () => void): void {
  const onRequest = ({ method }: IncomingMessage): void => {
    if (method === "POST") used();
  };
  const used = (): void => {
    server.off("request", onRequest).off("close", used);
    listener();
  };
  server.on("request", onRequest).on("close", used);
}

const numbers = Float32Array.from({ length }, (_, i) => Math.cos(i));
const tensor = Buffer.from(numbers.buffer);
const tensorHead = JSON.stringify({
  inputs: [{ name: "input", shape: [1, length], datatype: "FP32", parameters: { binary_data_size: tensor.length } }],
  parameters: { binary_data_output: true },
});

/** The requests it alternates: numbers as JSON and as bytes. */
const requests = [
  post("/infer", "content-type: application/json\r\n", Buffer.from(`[${numbers.join()}]`)),
  post(
    `/v2/models/${echo.name}/infer`,
    `content-type: application/octet-stream\r\ninference-header-content-length: ${tensorHead.length}\r\n`,
    Buffer.concat([Buffer.from(tensorHead), tensor]),
  ),
];

function post(path: string, headers: string, body: Buffer): Buffer {
  const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\n${headers}content-length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

/**
 * Sends requests one after the other while `another` says so, a few on each connection, since accepting connections must be warm too.
 */
async function ask(port: number, another: () => boolean): Promise<void> {
  for (let sent = requestsPerConnection; sent === requestsPerConnection;) {
    sent = 0;
    const socket = connect(port, "127.0.0.1");
    const next = (): unknown =>
      sent < requestsPerConnection && another() ? socket.write(requests[sent++ % requests.length]!) : socket.end();
    /** Bytes of the reply still to come. */
    let left = 0;
    socket.on("data", (piece) => {
      left -= piece.length;
      if (left < 0) {
        const head = piece.toString("latin1");
        left = head.indexOf("\r\n\r\n") + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1]) - piece.length;
      }
      if (!(left > 0)) next();
    });
    socket.on("connect", next);
    await once(socket, "close");
  }
}
