import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { test } from "node:test";
import { staleCommandLines } from "../scripts/lib/command-lines.mjs";
import { commandFlags } from "../scripts/lib/commands.mjs";
import { deadLinks, differences, differencesOfCommands, documents } from "../scripts/lib/docs.mjs";
import { filesBelow, root } from "../scripts/lib/files.mjs";
import { links, raggedRows } from "../scripts/lib/markdown.mjs";
import { entryPoints } from "../scripts/lib/public-exports.mjs";
import { complaintOnRun, compileSnippets, snippets } from "../scripts/lib/snippets.mjs";
import {
  adapterOptions,
  batcherOptions,
  defaultTags,
  optionsFile,
  errorCodes,
  literalIn,
  optionsOf,
  policyOptions,
  serverVariables,
} from "../scripts/lib/sources.mjs";

const read = (path) => readFileSync(`${root}/${path}`, "utf8");

test("every relative link of every document leads somewhere", () => {
  assert.deepEqual(
    documents().flatMap((file) => deadLinks(file)),
    [],
  );
});

for (const folder of ["docs/guide", "docs/reference"])
  test(`${folder}/README.md has a row for every page beside it, and lists none twice`, () => {
    const linked = links(read(`${folder}/README.md`));
    const pages = filesBelow(folder, ".md").map((file) => relative(`${root}/${folder}`, file));
    const missing = pages.filter((page) => page !== "README.md" && !linked.includes(page));
    assert.deepEqual(missing, [], "add a row: what a reader wants, and the page");
    const twice = pages.filter((page) => linked.indexOf(page) !== linked.lastIndexOf(page));
    assert.deepEqual(twice, []);
  });

test("every entry point stands in packages/sheaf/README.md, and back", () => {
  const points = new Map(entryPoints("sheaf").map(({ specifier }) => [specifier, undefined]));
  assert.deepEqual(differences(read("packages/sheaf/README.md"), "entry point", points), []);
});

test("every error code stands in docs/reference/errors.md, and back", () => {
  const codes = new Map(errorCodes().map((code) => [code, undefined]));
  assert.deepEqual(differences(read("docs/reference/errors.md"), "code", codes), []);
});

test("every option and its default stand in docs/reference/options.md, and back", async () => {
  assert.deepEqual(
    differences(read("docs/reference/options.md"), "option", await batcherOptions("BatcherOptions")),
    [],
  );
});

for (const name of ["BatcherOptions", "CallOptions", "RateLimit", "Price"])
  test(`every option of ${name} shows its default in the editor, the one that the code and the reference have`, async () => {
    const tags = defaultTags(optionsFile(name), name);
    const values = await batcherOptions(name);
    // "the executor's slots", "the batcher's": no literal.
    const isProse = (option) => tags.get(option)?.startsWith("the ") === true;
    const given = [...values].filter(([option, value]) => value !== undefined && !isProse(option));
    assert.ok(tags.size > 2);
    assert.deepEqual(
      given.filter(([option, value]) => tags.has(option) && tags.get(option) !== JSON.stringify(value)),
      [],
    );
  });

for (const [file, name, constant] of [
  ["adapters/api-client/api-batcher.ts", "RequestLimits", "apiDefaults"],
  ["core/consume.ts", "ConsumeOptions", "consumeDefaults"],
  ["adapters/bullmq.ts", "BatchProcessorOptions", "processorDefaults"],
  ["adapters/http/client.ts", "BatchClientOptions", "clientDefaults"],
  ["adapters/http/endpoint.ts", "EndpointOptions", "endpointDefaults"],
  ["adapters/notifications/expo.ts", "ExpoPushOptions", "expoDefaults"],
  ["adapters/shared/postgres/options.ts", "DatabaseBatcherOptions", "databaseDefaults"],
])
  test(`the editor shows the defaults of ${constant} with the options of ${name}`, () => {
    const shown = optionsOf(`sheaf/src/${file}`, name);
    const values = Object.entries(literalIn(`sheaf/src/${file}`, constant));
    const own = values.filter(([option, value]) => shown.has(option) && typeof value !== "object");
    assert.ok(own.length > 0);
    assert.deepEqual(own.map(([option]) => [option, shown.get(option)]), own); // prettier-ignore
  });

test("every row of every table has as many cells as its header", () => {
  assert.deepEqual(
    documents().flatMap((file) => raggedRows(readFileSync(file, "utf8")).map((line) => `${file}:${line}`)),
    [],
  );
});

test("every option of a call stands in docs/reference/options.md, and back", async () => {
  const options = await batcherOptions("CallOptions");
  assert.deepEqual(differences(read("docs/reference/options.md"), "call option", options), []);
});

test("every option of consume stands in docs/reference/calls.md, and back", () => {
  const file = "sheaf/src/core/consume.ts";
  const values = literalIn(file, "consumeDefaults");
  const options = new Map([...optionsOf(file, "ConsumeOptions").keys()].map((name) => [name, values[name]]));
  assert.deepEqual(differences(read("docs/reference/calls.md"), "consume option", options), []);
});

test("every option of the database and vector store adapters stands in docs/reference/databases.md, and back", () => {
  const tableName = ["shared/postgres/identifier.ts", "TableName"];
  const tables = {
    "write option": [
      tableName,
      ["shared/postgres/insert.ts", "InsertOptions"],
      ["shared/postgres/upsert.ts", "UpsertOptions"],
    ],
    "look-up option": [tableName, ["postgres/lookup.ts", "LookupOptions"]],
    "share option": [tableName, ["postgres/rate-shares.ts", "RateSharesOptions"]],
    "log option": [tableName, ["batch-log/log.ts", "BatchLogOptions"]],
    "store option": [
      tableName,
      ["vector-store/pgvector.ts", "PgvectorOptions"],
      ["vector-store/lancedb.ts", "LanceDbOptions"],
      ["vector-store/qdrant.ts", "QdrantOptions"],
      ["vector-store/store.ts", "VectorStoreOptions"],
    ],
  };
  for (const [heading, interfaces] of Object.entries(tables)) {
    const inCode = adapterOptions(...interfaces);
    assert.deepEqual(differences(read("docs/reference/databases.md"), heading, inCode), [], heading);
    const shown = interfaces.flatMap(([path, ...names]) =>
      names.flatMap((name) => [...optionsOf(`sheaf/src/adapters/${path}`, name)]),
    );
    // LanceDB's column has another default than pgvector's, which comes first here and in the page.
    const inEditor = new Map(shown.reverse());
    assert.deepEqual(differences(read("docs/reference/databases.md"), heading, inEditor), [], heading);
  }
});

for (const [page, interfaces] of Object.entries({
  "docs/guide/workers.md": { "node/contract/options.ts": "WorkerOptions" },
  "docs/guide/python.md": { "node/command/options.ts": "CommandOptions" },
  "docs/guide/text-models.md": {
    "models/plan-passes.ts": "PassLimits",
    "models/run-in-passes.ts": "PassOptions",
  },
  "docs/reference/policies.md": policyOptions(),
  "docs/reference/tuning.md": {
    "tuning/calibrate.ts": "CalibrateOptions",
    "tuning/recommend.ts": "RecommendOptions",
    "tuning/record/record-calls.ts": "RecordOptions",
    "tuning/simulation-options.ts": "SimulationOptions",
  },
}))
  test(`every option of ${Object.values(interfaces).join(", ")} and its default stand in ${page}, and back`, () => {
    const options = Object.entries(interfaces).flatMap(([file, name]) => [...optionsOf(`sheaf/src/${file}`, name)]);
    assert.deepEqual(differences(read(page), "option", new Map(options)), []);
  });

test("every option of measurePasses and its default stand in docs/guide/text-models.md, and back", () => {
  const options = optionsOf("sheaf/src/models/measure-passes.ts", "MeasurePassesOptions");
  assert.deepEqual(differences(read("docs/guide/text-models.md"), "start option", options), []);
});

test("every environment variable and its default stand in docs/reference/environment.md, and back", async () => {
  assert.deepEqual(differences(read("docs/reference/environment.md"), "variable", await serverVariables()), []);
});

const commands = await commandFlags();

test("every command, every flag and its default stand in docs/reference/commands.md, and back", () => {
  const flags = new Map([...commands].map(([name, { flags }]) => [name, flags]));
  assert.deepEqual(differencesOfCommands(read("docs/reference/commands.md"), flags), []);
});

test("every environment variable is a flag of the same name, and every setting's flag a variable", async () => {
  const variables = [...(await serverVariables()).keys()].sort();
  const [serve, proxy, config] = ["serve", "proxy", "config"].map((name) => commands.get(name).settings);
  assert.deepEqual([...config.values()].sort(), variables);
  // A command refuses the flags of the other.
  assert.deepEqual([...new Set([...serve.values(), ...proxy.values()])].sort(), variables);
  assert.ok(!serve.has("--upstream") && !proxy.has("--nats-url") && !proxy.has("--batch-dependent"));
  for (const settings of [serve, proxy, config]) {
    for (const [flag, variable] of settings)
      assert.equal(flag, `--${variable.toLowerCase().replaceAll("_", "-")}`, "as docs/reference/commands.md says");
  }
});

test("every command line of every document starts a command, script, bench or proof that exists, with flags it has", () => {
  const stale = documents().flatMap((file) =>
    staleCommandLines(readFileSync(file, "utf8"), commands).map((complaint) => `${relative(root, file)}: ${complaint}`),
  );
  assert.deepEqual(stale, []);
});

test("every JSON block of the documents parses", () => {
  for (const { text, document, line } of snippets(documents(), "json"))
    assert.doesNotThrow(() => JSON.parse(text), `${document}:${line}`);
});

test("every JavaScript snippet of the documents names what exists", () => {
  const { ok, messages } = compileSnippets(snippets(documents(), "js"), `${root}/artifacts/snippets-js`);
  assert.ok(ok, messages);
});

const blocks = snippets();
const compiled = compileSnippets(blocks);

test(`every TypeScript snippet of the documents compiles`, () => {
  assert.ok(blocks.length > 0);
  assert.ok(compiled.ok, compiled.messages);
});

for (const [index, block] of blocks.entries()) {
  if (!block.words.includes("run")) continue;
  test(`the snippet at ${block.document}:${block.line} runs and prints what the document says`, () => {
    assert.equal(complaintOnRun(block, compiled.files[index]), undefined);
  });
}

test("no document names a place on one machine", () => {
  const places = /\/(?:work|home\/\w+|root|Users\/\w+)\//;
  assert.deepEqual(
    documents()
      .filter((file) => places.test(readFileSync(file, "utf8")))
      .map((file) => relative(root, file)),
    [],
  );
});
