import { once } from "node:events";
import { connect, type AddressInfo } from "node:net";
import { answerProblems, openApp } from "../app.ts";
import { showSchemasOnly, takeJsonAsBytes } from "../body.ts";
import { LocalModel } from "../../models/local-model.ts";
import type { ModelDefinition } from "../../models/model-definition.ts";
import { Models } from "../../models/models.ts";
import { inferRoutes } from "../../protocols/infer.ts";
import { isTraced } from "../../observe/tracing.ts";
import type { Settings } from "../../settings.ts";
import { InFlightReplies } from "./in-flight-replies.ts";

/** V8 has compiled most of the path after so many. A model that loads for minutes must not keep a core busy. */
const mostRequests = 3000;
const connections = 8;
const length = 256;

const echo: ModelDefinition = {
  name: "warm-up",
  input: { kind: "floats", length },
  output: { kind: "vector", length },
  run: (items: readonly Float32Array[]) => items,
};

/**
 * Answers requests of its own until `loaded` settles, so that V8 has compiled what answers requests before the first one
 * comes: the first thousands take several times the CPU time of later ones. App and model are its own, on a free port of
 * the loopback interface: no log, no metric and no trace shows these requests. Nothing is done with WARMUP_BATCHES=0.
 */
export async function warmUpHttp(settings: Settings, loaded: Promise<unknown>): Promise<void> {
  if (settings.warmupBatches === 0 || isTraced()) return;
  let left = mostRequests;
  const stop = (): unknown => (left = 0);
  loaded.then(stop, stop);
  const own: Settings = { ...settings, logLevel: "silent", apiKey: undefined, natsUrl: undefined };
  const app = openApp(own);
  const models = new Models([echo], own, (definition) => new LocalModel(definition, own));
  new InFlightReplies(app).cutAfter(own.replyTimeoutMs, app);
  takeJsonAsBytes(app);
  showSchemasOnly(app);
  answerProblems(app, models);
  inferRoutes(app, models);
  try {
    await models.ready();
    await app.listen({ host: "127.0.0.1", port: 0 });
    const { port } = app.server.address() as AddressInfo;
    await Promise.all(Array.from({ length: connections }, () => ask(port, () => left-- > 0)));
  } finally {
    await models.close(0);
    await app.close();
  }
}

const body = JSON.stringify(Array.from({ length }, (_, i) => Math.fround(Math.cos(i))));
const request = Buffer.from(
  "POST /infer HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n" +
    `content-length: ${body.length}\r\n\r\n${body}`,
);

/** One request after the other on a connection, as long as `another` says so. */
async function ask(port: number, another: () => boolean): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  const next = (): unknown => (another() ? socket.write(request) : socket.end());
  /** Bytes of the reply that are to come. */
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
