import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { ConfigError, loadConfig } from "../../dist/settings/config.js";
import { temporaryFolder } from "../folder.js";
import { defaultSettings, settingsTable } from "../../dist/settings/settings.js";

const folder = temporaryFolder({ after });

function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

test("a flag wins over the environment, that over the config file, that over the default", async () => {
  const path = file("order.json", JSON.stringify({ maxBatchSize: 2, maxWaitMs: 3, workers: 4 }));
  const { settings, origins } = await loadConfig({
    flags: { maxBatchSize: "16" },
    environment: { MAX_BATCH_SIZE: "8", MAX_WAIT_MS: "9", PORT: "" },
    file: path,
  });
  assert.deepEqual([settings.maxBatchSize, settings.maxWaitMs, settings.workers, settings.port], [16, 9, 4, 8000]);
  assert.deepEqual(
    [origins.maxBatchSize, origins.maxWaitMs, origins.workers, origins.port],
    ["flag", "environment", "config file", "default"],
  );
});

test("a config file may have the line ends and the byte order mark of Windows, and spaces in its path", async () => {
  const path = file("made on Windows.json", '\uFEFF{\r\n  "maxBatchSize": 7,\r\n  "queueFullStatus": 503\r\n}\r\n');
  const { settings } = await loadConfig({ environment: {}, file: path });
  assert.deepEqual([settings.maxBatchSize, settings.queueFullStatus], [7, 503]);
});

test("without anything every setting has its default", async () => {
  const { settings, models, modelsOrigin, file: none } = await loadConfig({ environment: {} });
  assert.deepEqual(settings, defaultSettings);
  assert.deepEqual([models, modelsOrigin, none], [[{ model: "use-lite", settings: {} }], "default", undefined]);
});

test("every setting has the flag and the variable that its name gives, and takes its own default", () => {
  for (const { name, env, flag, default: value, parse, expects, description } of settingsTable) {
    assert.equal(env.toLowerCase().replaceAll("_", ""), name.toLowerCase());
    assert.equal(flag.slice(2).replaceAll("-", ""), name.toLowerCase());
    assert.ok(expects.length > 0 && description.length > 0, name);
    if (value !== undefined && !Array.isArray(value)) assert.equal(parse(String(value)), value, name);
  }
});

for (const [env, value, message] of [
  ["QUEUE_FULL_STATUS", "constructor", /one of 429, 503, got "constructor"/],
  ["QUEUE_FULL_STATUS", "500", /one of 429, 503/],
  ["MAX_BATCH_SIZE", "0", /^MAX_BATCH_SIZE must be an integer from 1 to 65536, got "0"\.$/],
  ["MAX_BATCH_SIZE", "3.5", /integer/],
  ["CACHE_MAX_BYTES", "-1", /an integer from 0 to/],
  ["ALLOWED_HOSTS", "one,,two", /host names with commas, or "\*", got "one,,two"/],
  ["MAX_BATCH_SIZE", "many", /got "many"/],
  ["SCHEDULER_STRATEGY", "magic", /one of .*\bauto, got "magic"/],
  ["QUEUE_FULL_STATUS", "418", /one of 429, 503/],
  ["CORS_ORIGINS", "example.org", /origins/],
  ["PORT", "65536", /integer from 0 to 65535/],
] as const) {
  test(`${env}=${value} is refused with its name, what it takes, and what it got`, async () => {
    await assert.rejects(loadConfig({ environment: { [env]: value } }), (error) => {
      assert.ok(error instanceof ConfigError);
      assert.match(error.message, message);
      return true;
    });
  });
}

test("a wrong value in a config file is named with the file; so is a setting that does not exist", async () => {
  const wrong = file("wrong.json", JSON.stringify({ port: "high" }));
  await assert.rejects(loadConfig({ environment: {}, file: wrong }), /port in .*wrong\.json must be an integer/);
  const unknown = file("unknown.json", JSON.stringify({ prot: 1 }));
  await assert.rejects(
    loadConfig({ environment: {}, file: unknown }),
    /prot in .*unknown\.json is not a setting; did you mean port\?$/,
  );
  const broken = file("broken.json", "{");
  await assert.rejects(loadConfig({ environment: {}, file: broken }), /broken\.json cannot be read/);
  await assert.rejects(loadConfig({ environment: {}, file: join(folder, "none.json") }), /no config file/);
});

test("a config file in JavaScript names models with settings of their own", async () => {
  const path = file(
    "models.mjs",
    `export default { port: 1234, models: ["mlp", { model: "use-lite", name: "texts", maxBatchSize: 8 }] };`,
  );
  const { settings, models, modelsOrigin } = await loadConfig({ environment: {}, file: path });
  assert.deepEqual([settings.port, modelsOrigin], [1234, "config file"]);
  assert.deepEqual(models, [
    { model: "mlp", settings: {} },
    { model: "use-lite", name: "texts", settings: { maxBatchSize: 8 } },
  ]);
  const wrong = file("own.json", JSON.stringify({ models: [{ model: "mlp", port: 1 }] }));
  await assert.rejects(
    loadConfig({ environment: {}, file: wrong }),
    /port of models\[0\] in .* is not a setting of a model; there are name, maxBatchSize/,
  );
});

test("a secret is not shown when it is wrong", async () => {
  await assert.rejects(loadConfig({ environment: { API_KEY: "  " } }), (error) => {
    assert.match((error as Error).message, /^API_KEY must be .*, got something else\.$/);
    return true;
  });
});

test("threads that are asked for are refused with WebGPU, with the reason; by default its models run in processes", async () => {
  const threads = { WORKER_ISOLATION: "thread" };
  for (const device of ["webgpu", "webgpu,cpu", "auto"]) {
    await assert.rejects(loadConfig({ environment: { ...threads, INFERENCE_DEVICE: device } }), {
      name: "ConfigError",
      message: `WORKER_ISOLATION thread cannot be combined with INFERENCE_DEVICE ${device}: two threads that use WebGPU at once crash their process. Unset it, or set process.`,
    });
    await loadConfig({ environment: { INFERENCE_DEVICE: device } });
  }
  await loadConfig({ environment: { ...threads, INFERENCE_DEVICE: "cuda:0,cpu" } });
  const models = [{ model: "mlp", inferenceDevice: "webgpu", workerIsolation: "thread" }];
  await assert.rejects(loadConfig({ environment: {}, file: file("gpu.json", JSON.stringify({ models })) }), /webgpu/);
});
