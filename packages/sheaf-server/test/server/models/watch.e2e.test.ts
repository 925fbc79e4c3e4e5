import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { FolderWatch } from "../../../dist/server/models/repository/watch.js";
import type { FolderRepository } from "../../../dist/server/models/repository/repository.js";
import { until } from "../../asking.js";
import { answering, servingFolder } from "./folder-server.js";

const silent = { warn: () => undefined, debug: () => undefined } as never;

test("a watched folder's changes are loaded once its files stand still, and what is gone is unloaded", async (t) => {
  const server = await servingFolder(t, { "a.mjs": answering("a1"), "b/1/model.mjs": answering("b1") });
  const repository = server.models.repository as FolderRepository;
  const loads: string[] = [];
  const load = repository.load.bind(repository);
  repository.load = (name) => {
    loads.push(name);
    return load(name);
  };
  const watch = new FolderWatch(repository, silent);
  watch.close(); // Here the test looks.
  const look = async (times: number): Promise<void> => {
    for (let i = 0; i < times; i++) await watch.look();
  };
  await look(5);
  assert.deepEqual(loads, [], "what has not changed is left alone");

  // A copy that goes on: half of a module, then more of it, and only then all of it.
  const file = join(server.folder, "c.mjs");
  const [whole, middle] = [answering("c1"), 40];
  for (let at = 0; at < whole.length; at += middle) {
    appendFileSync(file, whole.slice(at, at + middle));
    await look(2);
  }
  assert.deepEqual(loads, [], "it has not stood still for two looks");
  await look(3);
  await until(async () => (await server.infer("c")) === "c1");
  assert.deepEqual(loads, ["c"]);

  // A version folder that is moved into place, as deployments do.
  mkdirSync(join(server.folder, ".next"));
  server.put(".next/model.mjs", answering("b2"));
  renameSync(join(server.folder, ".next"), join(server.folder, "b", "2"));
  await look(3);
  await until(async () => (await server.infer("b")) === "b2");

  // A broken file is tried once; the version before serves.
  server.put("a.mjs", "export default {");
  await look(3);
  await until(async () => (await server.get("/readyz")).json.models[0].reason !== undefined);
  const before = loads.length;
  await look(5);
  assert.equal(loads.length, before, "not again before its files change");
  assert.equal(await server.infer("a"), "a1");
  server.put("a.mjs", answering("a2"));
  await look(3);
  await until(async () => (await server.infer("a")) === "a2");

  // The way back: a removed version leaves the one before it.
  rmSync(join(server.folder, "b", "2"), { recursive: true });
  await look(3);
  await until(async () => (await server.infer("b")) === "b1");

  rmSync(file);
  await look(3);
  await until(async () => (await server.infer("c")) === 404);
  assert.deepEqual(repository.names, ["a", "b"]);

  // What was unloaded on purpose stays so until its files change.
  await repository.unload("a");
  await look(4);
  assert.equal(await server.infer("a"), 404);

  // A folder that cannot be read for a while changes nothing.
  renameSync(server.folder, `${server.folder}-away`);
  await look(4);
  assert.equal(await server.infer("b"), "b1");
  renameSync(`${server.folder}-away`, server.folder);
  await look(4);
  assert.equal(await server.infer("b"), "b1");
});
