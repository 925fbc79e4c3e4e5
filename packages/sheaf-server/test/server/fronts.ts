import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { Server as HttpServer } from "node:http";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ModelDefinition } from "../../dist/index.js";
import { addressOf, openApp } from "../../dist/http/app.js";
import { serveFront, type RunningFront } from "../../dist/server/front-server.js";
import { serverOn, type RunningServer } from "../../dist/server/server.js";
import { defaultSettings, type Settings } from "../../dist/settings/settings.js";

/** A server with the parts that tests of connections look at. */
export interface Reading extends RunningServer {
  /** What accepts its connections. */
  readonly port: Server;
  /** What reads its requests. */
  readonly readers: readonly HttpServer[];
}

/** A hub, and fronts that take turns at the connections of one port, as processes of a cluster do. */
export async function behindFronts(
  models: readonly ModelDefinition[],
  own: Partial<Settings>,
  count: number,
): Promise<Reading> {
  const settings: Settings = { ...defaultSettings, ...own, httpProcesses: count };
  const folder = mkdtempSync(join(tmpdir(), "sheaf-fronts-"));
  const [hubPath, httpPath] = [join(folder, "hub"), join(folder, "http")];
  const hub = await serverOn(openApp(settings), { models, settings, hubPath });
  const closeHub = hub.close;
  const readers: HttpServer[] = [];
  let running: RunningFront[] = [];
  let turn = 0;
  const port = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const open = readers.filter(({ listening }) => listening);
    if (open.length === 0) socket.destroy();
    else open[turn++ % open.length]!.emit("connection", socket);
  });
  return Object.assign(hub, {
    port,
    readers,
    listen: async () => {
      await hub.app.listen({ path: httpPath });
      const start = { hubPath, httpPath, names: models.map(({ name }) => name), isFirst: false };
      // Each listens on a port of its own, which nobody uses. Without a warm-up, which would cost each test seconds.
      const ofFront = { ...settings, port: 0, warmupBatches: 0 };
      running = await Promise.all(
        Array.from({ length: count }, (_, index) => serveFront({ ...start, settings: ofFront, number: index + 1 })),
      );
      readers.push(...running.map(({ server }) => server));
      await hub.hub!.followed(count);
      await once(port.listen(settings.port, settings.host), "listening");
      return `http://${addressOf(port as never)}`;
    },
    close: async (options: { readonly graceMs?: number } = {}) => {
      const ends = await Promise.all(running.splice(0).map((front) => front.close(options.graceMs)));
      port.close();
      const isComplete = await closeHub(options);
      rmSync(folder, { recursive: true, force: true });
      return isComplete && ends.every(Boolean);
    },
  });
}
