import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { bench } from "../../dist/cli/bench.js";
import type { LoadResult } from "../../dist/load/result.js";
import { deserted, listen } from "../asking.js";
import { temporaryFolder } from "../folder.js";
import { running } from "./streams.js";

const serve = (t: TestContext, listener: RequestListener): Promise<string> => listen(t, createServer(listener));

const quick = ["--duration", "300ms", "--warm-up", "0ms", "--rate", "100"];

const run = running(bench);

const echo: RequestListener = (request, reply) => void request.resume().on("end", () => reply.end("{}"));

test("a URL is measured: a table on stdout, progress lines on stderr, exit 0", async (t) => {
  const url = await serve(t, echo);
  const { code, out, err } = await run(`${url}/infer`, "--payload", "[1]", "--pattern", "steady,closed", ...quick);
  assert.equal(code, 0, err);
  assert.match(out, /^configuration +pattern +offered\/s +achieved\/s +success +p50 ms/);
  assert.match(out, /127\.0\.0\.1:\d+ +steady .* 100 % /);
  assert.match(out, /127\.0\.0\.1:\d+ +closed /);
  assert.match(err, /^steady, 127\.0\.0\.1:\d+ …\n/);
  assert.doesNotMatch(err, /█|\r/, "no bar where there is no terminal");
});

test("--json gives every figure, and a held and a broken assertion give exit 0 and 3", async (t) => {
  const url = await serve(t, echo);
  const asserted = (condition: string) =>
    run(`${url}/infer`, "--payload", "[1]", "--json", "--assert", condition, ...quick);
  const held = await asserted("success>=100%");
  assert.equal(held.code, 0, held.err);
  const { results, machine, command } = JSON.parse(held.out) as any;
  assert.equal(results.length, 1);
  assert.equal(results[0].statuses["200"], results[0].requests);
  assert.match(machine, /^Node v\d+/);
  assert.match(command, /^sheaf bench http/);

  const broken = await asserted("p50<1us");
  assert.equal(broken.code, 3);
  assert.match(broken.out, /"assertion":"p50<1us".*"holds":false/);
});

test("a server of the open inference protocol is asked what to send, and its batches are counted", async (t) => {
  const seen: unknown[] = [];
  let batches = 0;
  const url = await serve(t, (request, reply) => {
    if (request.url === "/v1/models") return void reply.end('{"data":[{"id":"mlp"}]}');
    if (request.url === "/v2/models/mlp") {
      return void reply.end('{"inputs":[{"name":"x","datatype":"FP32","shape":[-1,3]}]}');
    }
    if (request.url === "/metrics") {
      const lines = [`_bucket{batcher="mlp",le="1"} ${batches}`, `_bucket{batcher="mlp",le="+Inf"} ${batches}`];
      return void reply.end([...lines, `_sum ${batches}`].map((line) => `sheaf_batch_size_items${line}\n`).join(""));
    }
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      seen.push(JSON.parse(body));
      batches++;
      reply.end("{}");
    });
  });
  const { code, out, err } = await run(url, "--json", ...quick);
  assert.equal(code, 0, err);
  assert.equal((seen[0] as { input: number[] }).input.length, 3);
  const { results } = JSON.parse(out) as { results: LoadResult[] };
  assert.equal(results[0]!.batches!.meanSize, 1);
  assert.deepEqual(results[0]!.batches!.sizes, [
    { upTo: 1, batches: results[0]!.requests },
    { upTo: null, batches: 0 },
  ]);
});

test("--report and --svg write a page that asks for nothing, and one picture a chart", async (t) => {
  const url = await serve(t, echo);
  const folder = temporaryFolder(t);
  const html = join(folder, "deep", "out.html");
  const files = ["--report", html, "--svg", join(folder, "svg")];
  const { code, err } = await run(url, "--payload", "[1]", "--pattern", "step", ...files, ...quick);
  assert.equal(code, 0, err);
  const page = readFileSync(html, "utf8");
  assert.equal(/<script|<link|<img|@import|src=|url\((?!#)/.exec(page), null);
  for (const title of ["Latency by pattern", "Throughput by pattern", "Throughput against latency"]) {
    assert.ok(page.includes(title), title);
  }
  assert.deepEqual(readdirSync(join(folder, "svg")).sort(), [
    "fan-step.svg",
    "overview.svg",
    "throughput-against-latency.svg",
    "throughput.svg",
  ]);
});

test("what cannot be measured ends with exit 1 and says why", async (t) => {
  const refusing = await serve(t, (_, reply) => void reply.writeHead(422).end('{"detail":"expected 768 numbers"}'));
  const gone = `${await deserted(t)}/infer`;
  const silent = await serve(t, () => undefined);
  let first = true;
  const dying = await serve(t, (_, reply) => {
    reply.writeHead(first ? 200 : 503).end("overloaded");
    first = false;
  });
  const cases: [string[], RegExp][] = [
    [
      [gone, "--payload", "1"],
      /POST http:\/\/127\.0\.0\.1:\d+\/infer cannot be reached: nothing listens there.* \(ECONNREFUSED\)/,
    ],
    [[gone], /cannot be reached: nothing listens there.* \(ECONNREFUSED\)/],
    // A port that fetch asks nobody on.
    [["http://127.0.0.1:1"], /http:\/\/127\.0\.0\.1:1 cannot be reached: nothing listens there.* \(ECONNREFUSED\)/],
    [["http://no-such-host.invalid"], /cannot be reached: .*(no such host|cannot be resolved)/],
    [[refusing.replace("http:", "https:")], /cannot be reached: it does not speak TLS/],
    [[silent, "--timeout", "200ms"], /did not answer within 200 ms \(--timeout\)/],
    [[`${refusing}/infer`, "--payload", "1", "--report", tmpdir()], /cannot be written: it is a folder/],
    [[`${refusing}/infer`, "--payload", "1", "--svg", "/dev/null/x"], /\/dev\/null\/x cannot be written/],
    [[`${refusing}/infer`, "--payload", "1", "--report", "/proc/nowhere/x.html"], /x\.html cannot be written/],
    [
      [`${refusing}/infer`, "--payload", "1"],
      /answered 422: \{"detail":"expected 768 numbers"\}.* check URL and --payload/,
    ],
    [
      [`${dying}/infer`, "--payload", "1"],
      /no request succeeded \(127.0.0.1:\d+, steady\): there is nothing to measure/,
    ],
  ];
  for (const [args, message] of cases) {
    const { code, err } = await run(...args, ...quick);
    assert.equal(code, 1, err);
    assert.match(err, message);
    assert.doesNotMatch(err, /\n {4}at /, "no stack trace for what is not our bug");
  }
});

test("a wrong command line ends with exit 2 and names what is wrong", async (t) => {
  const url = await serve(t, (_, reply) => void reply.writeHead(404).end());
  const cases: [string[], RegExp][] = [
    [["--rat", "5"], /unknown option '--rat'/],
    [["--rate", "fast"], /'--rate <n>' argument 'fast' is invalid. It must be a number from 0\.001 to 1000000/],
    [["--duration", "10"], /'10' is invalid. It must be a time such as 500ms, 10s or 2m/],
    [["--duration", "0s"], /--duration and --timeout must be above 0/],
    [["--pattern", "wavy"], /'wavy' is invalid. There are steady, burst, ramp, step, surge, closed/],
    [["--compare", "auto,best"], /'auto,best' is invalid. There are unbatched, .*\bauto\b/],
    [["--callers", "1.5"], /'1.5' is invalid. It must be an integer from 1 to 100000/],
    [["--assert", "p99<50"], /p99 takes us, ms, s/],
    [["--assert", "p98<50ms"], /got "p98<50ms"/],
    [["--assert", "fifo:p99<50ms"], /names a configuration that does not run \(127/],
    [["--compare", "auto"], /name a model, not a URL/],
    [["--payload", "{{flots 3}}"], /unknown placeholder \{\{flots 3\}\}/],
    [["--payload", "1", "--payload-file", "x"], /exclude each other/],
    [["--payload-file", "/nowhere/x.json"], /--payload-file cannot be read: ENOENT/],
    [["--header", "no colon"], /--header must be "name: value", got "no colon"/],
    [["--payload", "1", "--rate", "1000000"], /\/infer answered 404|requests in flight/],
    [[], /does not describe its inputs: give --payload/],
    [["a", "b"], /too many arguments/],
  ];
  for (const [args, message] of cases) {
    const { code, err } = await run(url, ...args);
    assert.match(err, message);
    assert.equal(code, message.source.includes("404") ? 1 : 2, `${args.join(" ")}: ${err}`);
  }
  assert.match((await run("http://[broken")).err, /is not a URL/);
});

test("--help goes to stdout with exit 0", async () => {
  const { code, out, err } = await run("--help");
  assert.deepEqual([code, err], [0, ""]);
  assert.match(out, /Usage: sheaf bench \[options\] \[target\]/);
});

test("clients with patience try again over HTTP: two requests an operation where each first one is refused", async (t) => {
  let requests = 0;
  const url = await serve(t, (request, reply) => {
    // The first one is the probe before the run; a GET asks for metrics.
    if (request.method === "POST") requests++;
    const isRefused = requests % 2 === 0;
    request.resume().on("end", () => {
      if (isRefused) reply.writeHead(429, { "retry-after-ms": "30" });
      reply.end("{}");
    });
  });
  const clients = ["--patience", "20s", "--obey-retry-after", "--pattern", "closed", "--callers", "1"];
  const { code, out, err } = await run(`${url}/infer`, "--payload", "[1]", "--json", ...clients, ...quick);
  assert.equal(code, 0, err);
  const [result] = (JSON.parse(out) as { results: LoadResult[] }).results;
  assert.equal(result!.goodput!.attemptsPerOperation, 2);
  assert.equal(requests, 2 * result!.requests + 1);
  assert.equal(result!.successRate, 1);
});

test("tenants: each request names its sender, and the figures of the flood stand apart", async (t) => {
  const named = new Map<string, number>();
  const url = await serve(t, (request, reply) => {
    if (request.method !== "POST") return echo(request, reply); // the metrics of a server
    const name = String(request.headers["x-tenant"]);
    named.set(name, (named.get(name) ?? 0) + 1);
    if (name === "flood") reply.statusCode = 429;
    echo(request, reply);
  });
  const args = [`${url}/infer`, "--payload", "[1]", ...quick, "--tenants", "3", "--flood", "300"];
  const { code, out, err } = await run(...args, "--json");
  assert.equal(code, 0, err);
  assert.deepEqual(new Set(named.keys()), new Set(["flood", "tenant-1", "tenant-2", "tenant-3"]));
  const { tenants, requests } = (JSON.parse(out) as { results: LoadResult[] }).results[0]!;
  assert.equal(tenants!["tenants"]!.successRate, 1);
  assert.equal(tenants!["flood"]!.ok, 0);
  assert.equal(tenants!["flood"]!.requests + tenants!["tenants"]!.requests, requests);
  assert.ok(tenants!["flood"]!.requests > tenants!["tenants"]!.requests);
  assert.match((await run(...args)).out, /steady: tenants .*\/s, 100 % answered, p50 .*; flood .*\/s, 0 % answered/);
});

test("tenants send keys of their own from a file", async (t) => {
  const keys = new Set<string>();
  const url = await serve(t, (request, reply) => {
    if (request.method === "POST") keys.add(String(request.headers.authorization));
    echo(request, reply);
  });
  const file = join(temporaryFolder(t), "keys.txt");
  writeFileSync(file, "one\ntwo\n\n");
  const args = [`${url}/infer`, "--payload", "[1]", ...quick, "--tenant-keys", file];
  const { code, err } = await run(...args, "--tenants", "2");
  assert.equal(code, 0, err);
  assert.deepEqual(keys, new Set(["Bearer one", "Bearer two"]));
  const few = await run(...args, "--tenants", "2", "--flood", "100");
  assert.equal(few.code, 2);
  assert.match(few.err, /must hold 3 API keys, one a line, got 2/);
});

test("flags of tenants that make no sense are refused with the reason", async () => {
  for (const [args, reason] of [
    [["http://127.0.0.1:1/infer", "--flood", "5"], /--flood needs --tenants/],
    [["http://127.0.0.1:1/infer", "--tenant-header", "X-A"], /--tenant-header needs --tenants/],
    [["http://127.0.0.1:1/infer", "--tenants", "2", "--tenant-header", "a b"], /a header must be/],
    [["mlp", "--tenants", "2", "--tenant-keys", "keys.txt"], /--tenant-keys is for a URL/],
    [["mlp", "--tenants", "2", "--flood", "5", "--pattern", "closed"], /--flood needs a pattern with a rate/],
  ] as const) {
    const { code, err } = await run(...args);
    assert.equal(code, 2, err);
    assert.match(err, reason);
  }
});
