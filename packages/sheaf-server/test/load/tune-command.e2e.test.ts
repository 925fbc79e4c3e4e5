import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { loadConfig } from "../../dist/settings/config.js";
import { tune } from "../../dist/cli/tune.js";
import { listen } from "../asking.js";
import { temporaryFolder } from "../folder.js";
import { running } from "./streams.js";

const fixture = (name: string): string => fileURLToPath(new URL(`fixtures/${name}.js`, import.meta.url));
const bin = fileURLToPath(new URL("../../bin/sheaf.js", import.meta.url));
const quick = ["--sizes", "1,4,16", "--error", "5", "--max-time", "2s"];
const floats = ["--item", "{{floats 2}}", "--rate", "200"];

const run = running(tune);

/** Answers a batch of inputs after a fixed time: what comes in one request costs as much as one item. */
async function fixedCostServer(t: TestContext, status = 200): Promise<string> {
  const server = createServer((request, reply) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      const { inputs } = JSON.parse(body) as { inputs: unknown[] };
      setTimeout(() => reply.writeHead(status).end(JSON.stringify({ outputs: inputs, detail: "no" })), 15);
    });
  });
  return `${await listen(t, server)}/infer`;
}

test("do not batch is exit 3, with the table and the inequality behind it", async () => {
  const measured = [fixture("per-item-worker"), "--sizes", "1,2", "--max-time", "1s"];
  // A rate so low that batching gains nothing even where a busy machine makes late timers look like a fixed part.
  const rare = await run(...measured, "--rate", "0.1");
  assert.equal(rare.code, 3, rare.err);
  assert.match(rare.out, /^in flight +size +run ms +± % +line ms +items\/s +runs\n/);
  assert.match(rare.out, /DO NOT BATCH: .*(no fixed part to share|only latency counts at this rate): .* < \d/s);

  const strict = await run(...measured, "--order", "strict");
  assert.equal(strict.code, 3);
  assert.match(strict.out, /DO NOT BATCH: strict order: .* n ≤ 1/);
});

test("a model whose results depend on the batch, or change by themselves: the advice says so", async (t) => {
  const config = join(temporaryFolder(t), "sheaf.config.json");
  const dependent = await run(fixture("batch-dependent-worker"), ...quick, "--write-config", config);
  assert.equal(dependent.code, 3, dependent.err);
  assert.match(dependent.out, /DO NOT BATCH: an item's result depends on its batch/);
  assert.match(dependent.out, /Its results depend on their batch-mates: .* So items run one by one;/);
  assert.deepEqual(JSON.parse(readFileSync(config, "utf8")), { maxBatchSize: 1 });

  const random = await run(fixture("random-worker"), ...quick, "--order", "strict");
  assert.match(random.out, /It is not deterministic: an item that ran alone several times gave different results/);
  const json = await run(fixture("random-worker"), ...quick, "--order", "strict", "--json");
  assert.equal((JSON.parse(json.out) as { selfTest: string }).selfTest, "not-deterministic");
});

test("a config file that cannot be written whole stays as it was", async (t) => {
  const config = join(temporaryFolder(t), "sheaf.config.json");
  const earlier = JSON.stringify({ port: 8123, note: "a".repeat(3000) });
  writeFileSync(config, earlier, { mode: 0o600 });
  const url = await fixedCostServer(t);
  // Files of at most 1 KiB, as on a disk that fills.
  const limited = ["-c", 'ulimit -f 1; exec "$@"', "bash", process.execPath, bin, "tune", url];
  const refused = await promisify(execFile)("bash", [...limited, ...floats, "--write-config", config, ...quick]).then(
    () => undefined,
    (error: unknown) => error as { code: number; stderr: string },
  );
  assert.equal(refused?.code, 1, refused?.stderr);
  assert.match(refused.stderr, /sheaf\.config\.json cannot be written: EFBIG/);
  assert.equal(readFileSync(config, "utf8"), earlier);
  assert.deepEqual(readdirSync(dirname(config)), ["sheaf.config.json"]);

  const { code, err } = await run(url, ...floats, "--write-config", config, ...quick);
  assert.equal(code, 0, err);
  assert.equal(statSync(config).mode & 0o777, 0o600);
});

test("what the range does not support is not advised: exit 1, what is missing, and no config file", async (t) => {
  const config = join(temporaryFolder(t), "sheaf.config.json");
  const url = await fixedCostServer(t);
  const { code, out, err } = await run(url, "--item", "1", "--sizes", "4,16", "--max-time", "1s", "--write-config", config); // prettier-ignore
  assert.equal(code, 1, err);
  assert.match(out, /: not settled\.\nNo single item was measured: add 1 to --sizes\.\n$/);
  assert.doesNotMatch(out, /MAX_BATCH_SIZE|BATCH:/);
  assert.match(err, /sheaf\.config\.json was not changed: nothing is settled/);
  assert.ok(!existsSync(config));
});

test("a URL whose requests cost the same whatever they hold: batch, exit 0, with the settings and the config file", async (t) => {
  const config = join(temporaryFolder(t), "sheaf.config.json");
  writeFileSync(config, '{"port": 8123, "maxBatchSize": 5}');
  const url = await fixedCostServer(t);
  const { code, out, err } = await run(url, ...floats, "--write-config", config, ...quick);
  assert.equal(code, 0, `${out}${err}`);
  assert.match(
    out,
    /For 200 items\/s: .*batch: \d+ items in one run take [\d.]+ ms instead of [\d.,]+ ms one by one \(.*× to /,
  );
  assert.match(out, /MAX_BATCH_SIZE=\d+ MAX_WAIT_MS=\d+ WORKERS=1/);
  const written = JSON.parse(readFileSync(config, "utf8")) as Record<string, number>;
  assert.equal(written["port"], 8123, "the rest of the file stays");
  assert.ok(written["maxBatchSize"]! > 5);
  const { settings } = await loadConfig({ file: config, environment: {} });
  assert.equal(settings.maxWaitMs, written["maxWaitMs"], "the server takes what was written");
});

test("--json gives the line, the table and the recommendation, and the pictures are drawn", async (t) => {
  const folder = temporaryFolder(t);
  const url = await fixedCostServer(t);
  const html = join(folder, "out.html");
  const { code, out, err } = await run(url, "--item", "1", "--json", "--budget", "1s", "--report", html, ...quick);
  assert.equal(code, 0, err);
  const result = JSON.parse(out);
  assert.deepEqual(result.costModel.table.map(([size]: number[]) => size), [1, 4, 16]); // prettier-ignore
  assert.equal(result.recommendation.verdict, "batch");
  const page = readFileSync(html, "utf8");
  for (const text of ["Run time by batch size", "Items a second by batch size", "Items in the batch"]) {
    assert.ok(page.includes(text), text);
  }
});

test("what cannot be measured ends with exit 1 and says why", async (t) => {
  const refusing = await fixedCostServer(t, 503);
  const cases: [string[], RegExp][] = [
    [[refusing, "--item", "1"], /answered 503: \{"outputs":\[1\],"detail":"no"\}/],
    [["no-such-model"], /There is no model no-such-model: name a built-in one \(use-lite, mlp\)/],
    [[fixture("failing-worker")], /failed while it was measured: out of range/],
  ];
  for (const [args, message] of cases) {
    const { code, err } = await run(...args, ...quick);
    assert.match(err, message);
    assert.equal(code, 1);
    assert.doesNotMatch(err, /\n {4}at /);
  }
});

test("a model is measured on the device that --device names, and the output says which", async () => {
  const device = ["--device", "cuda:9,cpu"];
  const shown = await run("mlp", ...device, "--sizes", "1,2", "--max-time", "200ms");
  assert.match(shown.out, /Runs on cpu; refused: cuda:9: .+/);
  const json = await run("mlp", ...device, "--sizes", "1,2", "--max-time", "200ms", "--json");
  assert.equal((JSON.parse(json.out) as { device: string }).device, "cpu");
});

test("a wrong command line ends with exit 2 and names what is wrong", async () => {
  const cases: [string[], RegExp][] = [
    [[], /missing required argument 'target'/],
    [["http://[broken", "--item", "1"], /is not a URL/],
    [[fixture("failing-worker"), "--sizes", "1,x"], /'1,x' is invalid. It must be an integer from 1 to 65536/],
    [[fixture("failing-worker"), "--budget", "0s"], /--budget must be above 0/],
    [[fixture("failing-worker"), "--item", "{{floats"], /an item must be JSON/],
    [[fixture("failing-worker"), "--order", "any"], /'any' is invalid. There are free, strict/],
    [["mlp", "--device", "tpu"], /must be auto, or cpu, webgpu, .* got "tpu"/],
    [["http://127.0.0.1:1", "--device", "cpu"], /--device is for a model: a server behind a URL has its own/],
    [[fixture("sampleless-worker")], /does not describe its inputs: export const sample/],
  ];
  for (const [args, message] of cases) {
    const { code, err } = await run(...args);
    assert.match(err, message);
    assert.equal(code, 2, err);
  }
});

test("--header goes with every request to a URL, also with those that ask what to send", async (t) => {
  const asked = new Set<string>();
  const server = createServer((request, reply) => {
    request.resume().on("end", () => {
      if (request.headers.authorization !== "Bearer k") return void reply.writeHead(401).end("{}");
      const { pathname } = new URL(request.url!, "http://server");
      asked.add(pathname);
      const answers: Record<string, unknown> = {
        "/v1/models": { data: [{ id: "m", sample: [1] }] },
        "/v2/models/m": { inputs: [{ name: "input", datatype: "FP32", shape: [-1, 1] }] },
      };
      reply.end(JSON.stringify(answers[pathname] ?? { outputs: Array.from({ length: 4 }, () => 1) }));
    });
  });
  const url = `${await listen(t, server)}/infer`;
  const without = await run(url, "--sizes", "4", "--max-time", "200ms");
  assert.match(without.err, /does not describe its inputs/);
  const { err } = await run(url, "--sizes", "4", "--max-time", "200ms", "--header", "authorization: Bearer k");
  assert.doesNotMatch(err, /does not describe its inputs|answered 401/);
  assert.deepEqual([...asked].sort(), ["/infer", "/v1/models", "/v2/models/m"]);
});
