import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { HubLink } from "../../dist/server/fronts/hub-link.js";
import { Messages } from "../../dist/server/fronts/wire.js";
import { atEnd } from "../at-end.js";

test("lists of models that come at once are followed in their order, however long each takes", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-link-"));
  const path = join(folder, "hub");
  const server = createServer().listen(path);
  await once(server, "listening");
  const link = new HubLink({
    path,
    front: 1,
    figures: () => ({ requests: [], process: [] }),
    // The first takes a turn of the event loop longer than the second.
    onModels: (models) => new Promise((resolve) => (models.length === 0 ? setImmediate(resolve) : resolve())),
    onUp: async () => undefined,
    onDown: () => undefined,
  });
  const [socket] = (await once(server, "connection")) as [Socket];
  atEnd(t, async () => {
    link.close();
    server.close();
    socket.destroy();
    rmSync(folder, { recursive: true });
  });
  const followed = await new Promise<unknown[]>((resolve) => {
    const heard: unknown[] = [];
    const messages = new Messages(socket, (head) => {
      if ("follows" in head && heard.push(head.follows) === 2) resolve(heard);
    });
    messages.send({ list: 1, models: [] });
    messages.send({ list: 2, models: [{ name: "a" }] });
  });
  assert.deepEqual(followed, [1, 2]);
});
