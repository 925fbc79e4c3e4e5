import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { embeddingApi, vectorOf } from "../proxy/proxying.js";
import { ready, sheaf } from "./sheaf-process.js";
import { statusesOfUnread } from "./unread.js";

test("openai's client, with only its address changed: 100 calls at once take two requests of 50, and SIGTERM ends with 0", async (t) => {
  const api = await embeddingApi(t, { latencyMs: 20 });
  const full = ["--max-batch-size", "50", "--max-wait-ms", "60000"];
  const proxy = sheaf(t, ["proxy", "--upstream", api.baseURL, "--port", "0", ...full]);
  const client = new OpenAI({ baseURL: `${await ready(proxy)}/v1`, apiKey: "sk-a" });
  const texts = Array.from({ length: 100 }, (_, i) => `text ${i}`);
  const replies = await Promise.all(texts.map((input) => client.embeddings.create({ model: "tiny", input })));
  for (const [i, { data }] of replies.entries()) {
    const difference = vectorOf(`text ${i}`).map((number, k) => Math.abs(number - data[0]!.embedding[k]!));
    assert.ok(Math.max(...difference) < 1e-6);
  }
  assert.equal(api.requests.length, 2);
  proxy.child.kill("SIGTERM");
  assert.equal(await proxy.ended, 0);
});

test("what was sent before SIGTERM is answered, also if the proxy had not read it yet", async (t) => {
  const api = await embeddingApi(t, {});
  const proxy = sheaf(t, ["proxy", "--upstream", api.baseURL, "--port", "0"]);
  const body = JSON.stringify({ model: "tiny", input: "text" });
  const head = `POST /v1/embeddings HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer sk-a\r\ncontent-type: application/json`;
  const statuses = await statusesOfUnread(t, proxy, `${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  assert.deepEqual(
    [...statuses].filter((status) => status !== 200 && status !== 503),
    [],
  );
  assert.equal(await proxy.ended, 0);
});

test("a key is in no log line at any level, whatever the upstream says of it", async (t) => {
  const fault = ({ headers: { authorization } }: any, number: number): unknown => {
    const body = { error: { message: `Incorrect API key: ${authorization}` } };
    const refused = { status: 401, body, headers: { "x-key": authorization } };
    return [undefined, refused, { ...refused, status: 500 }, "reset", "short", { status: 200, body }][number % 6];
  };
  const api = await embeddingApi(t, { fault });
  const words = ["proxy", "--upstream", api.baseURL, "--port", "0", "--log-level", "trace", "--max-wait-ms", "0"];
  const proxy = sheaf(t, words);
  const url = await ready(proxy);
  const [key, organization, azure, query] = ["sk-live-12345", "org-secret-77", "azure-secret-88", "query-secret-99"];
  const headers = { authorization: `Bearer ${key}`, "openai-organization": organization!, "api-key": azure! };
  const embed = async (input: unknown, search = ""): Promise<number> => {
    const init = { method: "POST", headers: { "content-type": "application/json", ...headers } };
    const response = await fetch(`${url}/v1/embeddings${search}`, {
      ...init,
      body: JSON.stringify({ model: "m", input }),
    });
    await response.text();
    return response.status;
  };
  const statuses = new Set<number>();
  for (let i = 0; i < 24; i++)
    statuses.add(await embed(i % 8 === 7 ? [] : `text ${i}`, i % 2 === 0 ? "" : `?key=${query}`));
  await (await fetch(`${url}/v1/models?key=${query}`, { headers })).text();
  const controller = new AbortController();
  const hangingUp = fetch(`${url}/v1/embeddings`, { method: "POST", headers, body: "{", signal: controller.signal });
  controller.abort();
  await hangingUp.catch(() => undefined);
  await api.close();
  statuses.add(await embed("the upstream has gone"));
  await (await fetch(`${url}/v1/models?key=${query}`, { headers })).text();
  const metrics = await (await fetch(`${url}/metrics`)).text();
  proxy.child.kill("SIGTERM");
  await proxy.ended;
  assert.deepEqual(
    [...statuses].sort((a, b) => a - b),
    [200, 400, 401, 500, 502],
  );
  const { stdout, stderr } = proxy.output;
  assert.ok(stdout.includes("batch failed") && stdout.includes('"level":20'), "it did log, down to debug");
  for (const secret of [key!, organization!, azure!, query!])
    for (const [name, text] of Object.entries({ stdout, stderr, metrics }))
      assert.ok(
        !text.includes(secret),
        `${secret} stands in ${name}: ${text.split("\n").find((line) => line.includes(secret))}`,
      );
});

test("without an upstream, with a wrong one, and with API_KEY: exit code 2, and what to do", async (t) => {
  const cases: [readonly string[], Record<string, string>, RegExp][] = [
    [[], {}, /--upstream https/],
    [["--upstream", "nowhere"], {}, /--upstream must be an http or https URL/],
    [["--upstream", "http://u:secret@h"], {}, /got "http:\/\/…@h"/],
    [["--upstream", "http://h"], { API_KEY: "x" }, /sheaf proxy does not use API_KEY/],
    [["--upstream", "http://h"], { RECORD_FILE: "x" }, /sheaf proxy records no calls: remove RECORD_FILE/],
    ...["--workers", "--warmup-batches", "--batch-dependent", "--max-text-chars", "--role", "--nats-url"].map(
      (flag): [readonly string[], Record<string, string>, RegExp] => [
        ["--upstream", "http://h", flag, "2"],
        {},
        new RegExp(`unknown option '${flag}'`),
      ],
    ),
  ];
  for (const [words, env, message] of cases) {
    const proxy = sheaf(t, ["proxy", ...words], env);
    assert.equal(await proxy.ended, 2);
    assert.match(proxy.output.stderr, message);
    assert.ok(!proxy.output.stderr.includes("secret"));
  }
});

test("HTTP_PROCESSES is refused by name, as a variable and as a flag", async (t) => {
  const words = ["proxy", "--upstream", "http://127.0.0.1:1/v1"];
  const named = sheaf(t, words, { HTTP_PROCESSES: "2" });
  assert.equal(await named.ended, 2);
  assert.match(named.output.stderr, /sheaf proxy runs in one process[^]*remove HTTP_PROCESSES/);
  const flagged = sheaf(t, [...words, "--http-processes", "2"]);
  assert.equal(await flagged.ended, 2);
  assert.match(flagged.output.stderr, /--http-processes/);
});
