import assert from "node:assert/strict";
import { appendFileSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { KeptResults } from "../../dist/cache/kept-results.js";
import { ModelCache } from "../../dist/cache/model-cache.js";
import { ResultCache } from "../../dist/cache/result-cache.js";
import type { ModelDefinition } from "../../dist/index.js";
import { temporaryFolder } from "../folder.js";
import { serving } from "../server/serving.js";

const maxBytes = 1_000_000;
const served = (value: unknown, batchSize = 2): any => ({ value, queueMs: 1, runMs: 2, batchSize });

interface Process {
  version?: string;
  ttlMs?: number;
  bound?: number;
}

/** A server's cache over a folder, from its start to its end. */
async function process<T>(
  folder: string,
  { version = "1", ttlMs, bound = maxBytes }: Process,
  use: (ask: (item: unknown, key?: { name: string }) => Promise<unknown>, cache: ModelCache) => Promise<T>,
): Promise<T> {
  const onDisk = await KeptResults.open(folder, bound, { warn: () => assert.fail() });
  const store = new ResultCache({ maxBytes: bound, onDisk });
  const nameOf = (_: unknown, key: object | undefined): string =>
    JSON.stringify([version, (key as { name: string } | undefined)?.name ?? null]);
  const cache = new ModelCache(store, { ttlMs, nameOf });
  const ask = async (item: unknown, key?: { name: string }): Promise<unknown> =>
    (await cache.infer(item, { caller: { key } }, async () => served("ran"))).value;
  try {
    return await use(ask, cache);
  } finally {
    await onDisk.close();
  }
}

test("a later process finds the results of the same version and key name, equal to the bit, and no others", async (t) => {
  const folder = temporaryFolder(t);
  const value = { vector: Float32Array.of(0.1, -0), tokens: 3, text: "é" };
  const [acme, other] = [{ name: "acme" }, { name: "other" }];
  await process(folder, {}, async (_, cache) => {
    await cache.infer("a", {}, async () => served(value));
    await cache.infer("b", { caller: { key: acme } }, async () => served("of acme"));
  });
  assert.equal(statSync(join(folder, "results.journal")).mode & 0o777, 0o600);
  await process(folder, {}, async (ask, cache) => {
    assert.deepEqual(await ask("a"), value);
    assert.equal(await ask("b"), "ran", "without a key");
    assert.equal(await ask("b", other), "ran");
    assert.equal(await ask("b", { name: "acme" }), "of acme", "a key of the same name, perhaps a rotated one");
    assert.equal(cache.counts.savedRuns, 1, "two halves of a run");
  });
  await process(folder, { version: "2" }, async (ask) => assert.equal(await ask("a"), "ran"));
  await process(folder, {}, async (ask) => assert.deepEqual(await ask("a"), value, "the first version again"));
});

test("the file holds no item, ages count through a restart, and a clock that was ahead revives nothing", async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, "results.journal");
  const now = t.mock.method(Date, "now", () => 1_000_000);
  await process(folder, { ttlMs: 5000 }, async (ask) => void (await ask("a secret text")));
  assert.doesNotMatch(readFileSync(path, "utf8"), /secret/);
  now.mock.mockImplementation(() => 1_004_999);
  await process(folder, { ttlMs: 5000 }, async (_, cache) => assert.equal(cache.counts.items, 1));
  now.mock.mockImplementation(() => 1_005_000);
  await process(folder, { ttlMs: 5000 }, async (_, cache) => assert.equal(cache.counts.items, 0));
  now.mock.mockImplementation(() => 999_999);
  await process(folder, { ttlMs: 5000 }, async (_, cache) => assert.equal(cache.counts.items, 0));
});

test("the folder stays within its bound: what made room and what no model asks for any more goes", async (t) => {
  const folder = temporaryFolder(t);
  const bound = 300_000;
  const path = join(folder, "results.journal");
  for (let version = 0; version < 12; version++)
    await process(folder, { version: String(version), bound }, async (_, cache) => {
      for (let i = 0; i < 400; i++) await cache.infer(i, {}, async () => served(new Float32Array(250)));
    });
  // Base64 is a third longer, and a file is compacted once it has a mebibyte and has doubled.
  assert.ok(statSync(path).size < 2 * (1_048_576 + 1.5 * 2 * bound), `${statSync(path).size} bytes`);
  await process(folder, { version: "11", bound }, async (_, cache) => assert.ok(cache.counts.items > 50));
});

test("a line that is cut short is dropped, a damaged one is named, and a folder has one owner", async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, "results.journal");
  await process(folder, {}, async (ask) => void (await Promise.all(["a", "b"].map((item) => ask(item)))));
  appendFileSync(path, "0badc0de {");
  await process(folder, {}, async (_, cache) => {
    assert.equal(cache.counts.items, 2);
    await assert.rejects(KeptResults.open(folder, maxBytes, { warn() {} }), /belongs to process \d+/);
  });
  writeFileSync(path, readFileSync(path, "utf8").replace('"batchSize":2', '"batchSize":3'));
  await assert.rejects(KeptResults.open(folder, maxBytes, { warn() {} }), /results\.journal:1 is damaged/);
});

test("a server that is started again answers from CACHE_DIR, for a model whose version is known", async (t) => {
  const settings = { cacheMaxBytes: maxBytes, cacheDir: temporaryFolder(t) };
  let runs = 0;
  const model = (name: string, version: string | undefined): ModelDefinition => ({
    name,
    version,
    input: { kind: "text" },
    output: { kind: "vector", length: 1 },
    run: (texts: string[]) => texts.map((text) => (runs++, Float32Array.of(text.length))),
  });
  for (const [round, expected] of [
    ["miss", "miss"],
    ["hit", "miss"],
  ].entries()) {
    const server = await serving(t, [model("known", "1"), model("unknown", undefined)], settings);
    const found = [];
    for (const name of ["known", "unknown"]) {
      const { headers, json } = await server.post(`/infer/${name}`, { input: "four" });
      assert.deepEqual(json.output, [4]);
      found.push(headers.get("x-sheaf-cache"));
    }
    assert.deepEqual(found, expected, `round ${round}`);
    await server.close();
  }
  assert.equal(runs, 3);
});
