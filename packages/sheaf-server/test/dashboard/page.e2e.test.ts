import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import Fastify from "fastify";
import { createBatcher } from "sheaf";
import { createProxy, dashboardPlugin, type ModelDefinition } from "../../dist/index.js";
import { atEnd } from "../at-end.js";
import { doubling, gated, measuringTexts, serving, type Serving } from "../server/serving.js";
import { batching, line, start } from "../server/batches/batching.js";
import { view } from "./viewer.js";
import { until } from "../asking.js";
import { closeBrowser, live, numberIn, open as openPage, pixelsTooWide, skip, tile, violations } from "./browser.js";

after(closeBrowser);

const artefacts = fileURLToPath(new URL("../../../../artifacts/page/", import.meta.url));
mkdirSync(artefacts, { recursive: true });

/** A run costs 8 ms and a little for each text: batching pays. */
function slowTexts(name = "texts"): ModelDefinition {
  const model = measuringTexts(name);
  const run = model.run as (texts: string[]) => unknown[];
  return {
    ...model,
    run: async (texts: string[]) => {
      await new Promise((resolve) => setTimeout(resolve, 8 + 0.1 * texts.length));
      return run(texts);
    },
  };
}

/** Callers who each send one text after the other until told to stop. */
function load(server: Serving, callers: number): () => Promise<void> {
  let isOn = true;
  const caller = async (): Promise<void> => {
    // The server may end before its callers: a test's clean-up goes in the order of its making.
    while (isOn && server.app.server.listening) {
      await server.post("/infer", { input: "some text" }).catch((error: unknown) => {
        if (server.app.server.listening) throw error;
      });
    }
  };
  const all = Array.from({ length: callers }, caller);
  return async () => {
    isOn = false;
    await Promise.all(all);
  };
}

/** Opens a page and waits until it is connected. */
async function opened(...asked: Parameters<typeof openPage>): Promise<Page> {
  const page = await openPage(...asked);
  await live(page);
  return page;
}

/** Answered in the last minute; a test is shorter. */
const answered = async (page: Page): Promise<number> => {
  const figure = await tile(page, "Answered");
  return figure === "–" ? 0 : numberIn(figure);
};

async function metric(server: Serving, series: string): Promise<number> {
  const lines = (await server.get("/metrics")).text.split("\n");
  return Number(lines.find((line) => line.startsWith(`${series} `))?.slice(series.length));
}

test("the numbers move under load, and agree with /metrics when it has ended", { skip }, async (t) => {
  const server = await serving(t, [slowTexts(), doubling()]);
  const page = await opened(t, server.url);
  const stop = load(server, 12);
  await until(async () => (await answered(page)) > 50);
  const before = await answered(page);
  await until(async () => (await answered(page)) > before);
  await page.locator("#verdict", { hasText: /[\d.]+ items share a run|Batching gains/ }).waitFor();
  assert.ok((await page.locator("#reasons li").count()) > 0);
  assert.ok((await page.locator("#recent i").count()) > 5);
  // A busy machine may let a second go by without a batch.
  await page.locator('#latency[aria-label^="Last second: half of the items took at most"]').waitFor();
  await stop();
  const total = await metric(server, 'sheaf_items_total{batcher="texts",outcome="ok"}');
  await until(async () => (await answered(page)) === total);
  const counted = await page.locator("#sizes-legend").innerText();
  const batches = await metric(server, 'sheaf_batch_size_items_count{batcher="texts"}');
  assert.equal(numberIn(counted.slice("Share of ".length)), batches, counted);

  await page.getByRole("radio", { name: "double" }).check();
  await until(async () => (await answered(page)) === 0);
  assert.equal(await page.locator("#verdict").innerText(), "Ready, and nothing to do");
});

test("the playground shows a result, its latency and its batch; 200 ride in few batches", { skip }, async (t) => {
  const server = await serving(t, [slowTexts(), doubling()]);
  const page = await opened(t, server.url, {}, /status of 422/);
  const result = page.locator("#result");
  await page.getByLabel("Input for texts").fill("ABC");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await result.getByText("It ran alone.").waitFor();
  assert.match(await result.locator(".figure").innerText(), /^[\d.]+ ms in the server$/);
  assert.match(await result.locator("pre").innerText(), /3,\s+65/, "the length, and the code of A");

  await page.getByRole("button", { name: "Send 200" }).click();
  await result.getByText("200 answers").waitFor();
  const largest = numberIn(/The largest run held (.*),/.exec(await result.innerText())![1]!);
  assert.ok(largest > 1, `${largest} of 32 in the largest run`);
  const text = (await server.get("/metrics")).text;
  assert.match(text, /sheaf_items_total\{batcher="texts",outcome="ok"\} 201/);

  await page.getByRole("radio", { name: "double" }).check();
  const floats = page.getByLabel("Input for double");
  assert.equal((await floats.inputValue()).split(",").length, 3, "as many numbers as the model takes");
  await floats.fill("[1, 2.5, -3]");
  await floats.press("Control+Enter");
  await result.getByText("It ran alone.").waitFor();
  assert.deepEqual(JSON.parse(await result.locator("pre").innerText()), [2, 5, -6]);

  await floats.fill("1, two, 3");
  await floats.press("Control+Enter");
  await result.getByText("“two” is not a number").waitFor();
  await floats.fill("1, 2");
  await floats.press("Control+Enter");
  await result.getByText("INVALID_INPUT").waitFor();
});

test("the playground begins with the sample of a model that gives one", { skip }, async (t) => {
  const [json, text] = [{ kind: "json" }, { kind: "text" }] as const;
  const echo = (name: string, kind: typeof json | typeof text, example: unknown): ModelDefinition => ({
    name,
    input: kind,
    output: json,
    example,
    run: (items: unknown[]) => items,
  });
  const server = await serving(t, [echo("records", json, { a: [1, null] }), echo("words", text, "hello")]);
  const page = await opened(t, server.url);
  assert.equal(await page.getByLabel("Input for records").inputValue(), '{"a":[1,null]}');
  await page.getByRole("radio", { name: "words" }).check();
  assert.equal(await page.getByLabel("Input for words").inputValue(), "hello");
});

test("a fresh server says nothing of what batches gain until its runs support it", { skip }, async (t) => {
  const server = await serving(t, [slowTexts(), doubling()]);
  const page = await opened(t, server.url);
  assert.deepEqual(
    await page.locator("#tiles .figure").allInnerTexts(),
    ["–", "–", "–", "0"],
    "an empty tile shows no figure",
  );
  assert.deepEqual(await page.locator("#tiles .detail").allInnerTexts(), []);
  for (const button of ["Send", "Send 200", "Send 200"]) {
    await page.getByRole("button", { name: button, exact: true }).click();
    await page.locator("#result .figure").waitFor();
    const before = await page.locator("#tiles").innerText();
    await until(async () => (await page.locator("#tiles").innerText()) !== before);
    // What the page says is what stats() says, and with its range.
    const { verdict } = await statsOf(server.url);
    const said = await page.locator(".verdict, .tiles, #result").allInnerTexts();
    if (verdict.verdict === "measuring") {
      if (button === "Send 200") assert.match(said.join(), /The gain is being measured/);
      assert.doesNotMatch(said.join(), /×|one by one|gains /);
    } else assert.match(said.join(), /Batching gains [\d.]+× \([\d.]+–[\d.]+\)/);
  }
  await page
    .locator("#result")
    .getByText(/the last 2 took .* to /)
    .waitFor();
});

/** What the page knows of the first batcher, as of the last tick. */
async function statsOf(url: string): Promise<any> {
  const viewer = await view(url);
  const { last } = await viewer.next("hello");
  viewer.leave();
  return last.batchers[0].stats;
}

test("a single answer is drawn: a point in the latency chart, a bar and its colour", { skip }, async (t) => {
  const server = await serving(t, [slowTexts()]);
  const page = await opened(t, server.url, {}, /willReadFrequently/);
  assert.equal(await pixelsDrawn(page, "#latency"), 0);
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await until(async () => (await page.locator("#recent i").count()) === 1);
  await until(async () => (await pixelsDrawn(page, "#latency")) > 10);
  assert.equal(await page.locator("#recent-what").innerText(), "Last run; the top is 32 items");
  assert.equal(await page.locator("#recent-legend").innerText(), "Slot free");
  assert.equal(await page.locator("#recent i").getAttribute("title"), "1 item: Slot free");
});

/** Pixels of a chart in the colour of its median; axes and grid are grey. */
const pixelsDrawn = (page: Page, chart: string): Promise<number> =>
  page.evaluate((selector) => {
    const { document, getComputedStyle } = globalThis as any;
    const canvas = document.querySelector(`${selector} canvas`);
    const sample = document.body.appendChild(document.createElement("i"));
    sample.style.color = "var(--p50)";
    const wanted = getComputedStyle(sample).color.match(/\d+/g).map(Number) as number[];
    sample.remove();
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let pixels = 0;
    for (let at = 0; at < data.length; at += 4)
      if (data[at + 3] === 255 && wanted.every((value, i) => Math.abs(value - data[at + i]) < 8)) pixels++;
    return pixels;
  }, chart);

test("policy and limits in force are listed, and the links lead somewhere", { skip }, async (t) => {
  const warning = "Its results depend on their batch-mates.";
  const small = { ...doubling(), maxBatchSize: 4, warning };
  const server = await serving(t, [small], { schedulerStrategy: "fifo", maxWaitMs: 20, queueMaxSize: 1500 });
  const page = await opened(t, server.url);
  const limits = (await page.locator("#limits").innerText()).replaceAll("\n", " ");
  for (const limit of ["Policy fifo", "Batch size at most 4", "at most 20 ms", "Queue at most 1,500 items"])
    assert.ok(limits.includes(limit), limits);
  assert.deepEqual(await page.locator("#advice li").allInnerTexts(), [warning]);
  const links = await page.locator("#links a").evaluateAll((all) => all.map((link) => (link as any).href as string));
  assert.deepEqual(
    links.map((link) => new URL(link).pathname),
    ["/docs", "/metrics"],
  );
  for (const link of links) assert.equal((await fetch(link)).status, 200, link);
  const locked = await serving(t, [small], { apiKey: "open sesame" });
  const viewer = await view(locked.url, { authorization: "Bearer open sesame" });
  const { links: open_ } = await viewer.next("hello");
  viewer.leave();
  assert.deepEqual(open_.map(({ href }: any) => href), ["docs"], "a browser sends no key with a link"); // prettier-ignore
});

test("the page says from the start what batching gains, and how it knows; bursts stay listed", { skip }, async (t) => {
  // Its executor tells the runs of a warm-up, and they do not depend on this machine: 32 items in one run gain 10 times.
  const { run, ...described } = slowTexts();
  const warmUp = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? { size: 1, runMs: 5 } : { size: 32, runMs: 16 }));
  const executor = {
    slots: 1,
    ready: async () => warmUp,
    run: run as (texts: never[]) => Promise<unknown[]>,
    close: async () => {},
  };
  const model: ModelDefinition = { ...described, run: executor };
  const server = await serving(t, [model]);
  await server.ready();
  const page = await opened(t, server.url);
  await page.locator("#verdict-why").getByText("at the start, runs of 32 gained 10×").waitFor();
  const many = page.getByRole("button", { name: "Send 200" });
  for (const earlier of [0, 1, 2]) {
    await many.click();
    await page.locator("#result").getByText("for 200 answers").waitFor();
    await until(async () => (await page.locator("#presses li").count()) === earlier);
    await page.locator("#send-many:enabled").waitFor();
  }
  await page
    .locator("#verdict")
    .getByText(/items share a run$/)
    .waitFor();
  assert.equal(await page.locator("#verdict-method").isVisible(), false);
  await page.locator("summary").click();
  assert.match(await page.locator("#verdict-method").innerText(), /^Measured /);
  assert.match(await page.locator("#presses li").first().innerText(), /: [\d.]+ m?s, runs of up to 32\.$/);
  // A second without a run leaves no figure in a legend, and no dash that stands for one.
  await page.locator('#latency[aria-label="No run in the last second"]').waitFor();
  for (const legend of await page.locator(".legend").allInnerTexts()) assert.doesNotMatch(legend, /–/);
  // As many figures as fill their rows, all of the last minute.
  assert.deepEqual(await page.locator(".tile dt").allInnerTexts(), ["Answered", "Latency p99", "Items in a run", "Not answered"]); // prettier-ignore
  assert.deepEqual(await violations(page), []);
});

test("a proxy's page has a row for each limit of its upstream", { skip }, async (t) => {
  const { llmServer }: any = await import(new URL("../../../../test/fakes/llm-server.mjs", import.meta.url).href);
  const api = await llmServer();
  atEnd(t, () => api.close());
  const proxy = await createProxy({ upstream: api.baseURL, settings: { port: 0, logLevel: "silent", tenantBy: "header", upstreamTokensPerMinute: 60 } }); // prettier-ignore
  atEnd(t, () => proxy.close({ graceMs: 0 }));
  const url = await proxy.listen();
  const ask = async (tenant: string): Promise<unknown> =>
    (
      await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-tenant": tenant },
        body: JSON.stringify({ model: "gpt <b>", max_tokens: 1500, messages: [{ role: "user", content: "one two" }] }),
      })
    ).text();
  // The first of them waits for seven seconds.
  void Promise.allSettled([ask("ben"), ask("ben"), ask("carl")]);
  const page = await opened(t, url);
  const row = page.locator("#rate-limits-rows tr", { hasText: "ben 2, carl 1" });
  await row.waitFor();
  const cells = await row.locator("th, td").allTextContents();
  assert.deepEqual([cells[0], cells[1], ...cells.slice(3)], ["gpt <b>: tokens", "60", "0", "3", "0", "ben 2, carl 1", "0"]); // prettier-ignore
  await page.screenshot({ path: `${artefacts}limits.png`, fullPage: true });
  assert.deepEqual(await violations(page), []);
});

test("tenants have a table, the busiest first and the sum of the others last", { skip }, async (t) => {
  const server = await serving(t, [measuringTexts()], { tenantBy: "header", tenantItemsPerSecond: 5 });
  await server.ready();
  const ask = (tenant: string, items: number): Promise<unknown> =>
    server.post("/infer", { inputs: Array.from({ length: items }, () => "text") }, { "x-tenant": tenant });
  for (let i = 0; i < 22; i++) await ask(`small ${i}`, 1);
  await ask("large", 500);
  await ask("medium <b>", 3);
  await ask("large", 464); // it has had more than its 5 a second
  const page = await opened(t, server.url);
  await until(async () => (await page.locator(".tile", { hasText: "Not answered" }).innerText()).includes("464"));
  assert.match(await page.locator(".tile", { hasText: "Not answered" }).innerText(), /464 over a tenant’s limit/);
  const rows = page.locator("#tenants-rows tr");
  await rows.nth(20).waitFor();
  const texts = await Promise.all((await rows.all()).map((row) => row.locator("th, td").allTextContents()));
  assert.equal(texts.length, 21);
  assert.deepEqual(texts[0], ["large", "0", "500", "0", "0", "464"]);
  assert.deepEqual(texts[1], ["medium <b>", "0", "3", "0", "0", "0"]);
  // Of those who came when the twenty places were taken, and of the two who lost theirs.
  assert.deepEqual(texts[20], ["(others)", "0", "4", "0", "0", "0"]);
  assert.deepEqual(await violations(page), []);

  const plain = await serving(t, [measuringTexts()]);
  const other = await opened(t, plain.url);
  assert.equal(await other.locator("#tenants").isVisible(), false);
});

test("live calls and bulk ones have a table where both come, and without bulk there is none", { skip }, async (t) => {
  const model = gated();
  const server = await serving(t, [model], { maxBatchSize: 2 });
  const page = await opened(t, server.url);
  const item = [1, 2, 3];
  const ask = (inputs: unknown[], headers = {}): Promise<unknown> => server.post("/infer", { inputs }, headers);
  const calls = [ask([item])];
  await model.started;
  await page.locator(`#queue[aria-label$="1 run at work"]`).waitFor();
  assert.equal(await page.locator("#lanes").isVisible(), false);
  calls.push(ask([item, item, item], { "x-sheaf-priority": "bulk" }));
  const row = (name: string): Promise<string[]> =>
    page.locator("#lanes-rows tr", { hasText: name }).locator("th, td").allTextContents();
  await until(async () => (await row("Bulk"))[1] === "3");
  const [, , oldest] = await row("Bulk");
  assert.match(oldest!, /^[\d.]+ m?s$/);
  assert.deepEqual((await row("Live")).slice(0, 3), ["Live calls", "0", "–"]);
  assert.deepEqual(await violations(page), []);
  model.release();
  await Promise.all(calls);
  await until(async () => (await row("Bulk")).slice(1, 3).join() === "0,–");
  for (const name of ["Live", "Bulk"]) assert.match((await row(name)).at(-2)!, /^[\d.]+ m?s$/);
});

test("background batches have a table with their progress, from which an operator ends one", { skip }, async (t) => {
  const model = { ...gated("measure"), input: { kind: "text", maxTokens: 9 } as const };
  let runs = 0;
  const run = async (texts: string[]) => {
    if (runs++ > 0) await (model.run as (texts: unknown[]) => Promise<unknown>)(texts);
    return texts.map(() => ({ vector: Float32Array.of(1, 2, 3), tokens: 1, truncated: false }));
  };
  const key = "secret";
  const server = await batching(t, { maxBatchSize: 4, apiKey: key }, [{ ...model, run } as never]);
  const openai = server.as(key);
  const page = await openPage(t, server.url, {}, /401/);
  await page.locator("#key-input").fill(key);
  await page.locator("#key button").click();
  await live(page);
  assert.equal(await page.locator("#batches").isVisible(), false);
  const lines = Array.from({ length: 4000 }, (_, n) => line(`${n}`, "x"));
  const batch = await start(openai, lines);
  const row = page.locator("#batches-rows tr");
  await row.filter({ hasText: "4 of 4,000" }).waitFor();
  assert.match((await row.locator("th, td").allTextContents()).join("|"), /^batch_[0-9a-f]{8}\|measure\|in progress\|/);
  assert.deepEqual(await violations(page), []);
  await row.scrollIntoViewIfNeeded();
  await page.screenshot({ path: `${artefacts}batches.png`, fullPage: true });
  await row.getByRole("button", { name: `Cancel ${batch.id}` }).click();
  await row.filter({ hasText: "cancelling" }).waitFor();
  model.release();
  await page.locator("#batches").waitFor({ state: "hidden" });
  assert.equal((await openai.batches.retrieve(batch.id)).status, "cancelled");
});

test("on a phone the playground comes before the figures", { skip }, async (t) => {
  const server = await serving(t, [slowTexts()]);
  const page = await opened(t, server.url, { width: 390, height: 844 });
  const top = async (selector: string): Promise<number> => (await page.locator(selector).boundingBox())!.y;
  assert.ok((await top("#playground")) < 844 / 2, "its top is in the upper half of the screen");
  assert.ok((await top("#playground")) < (await top("#tiles")));
});

test("with a cache the page shows the share of items from it, and the runs they saved", { skip }, async (t) => {
  const server = await serving(t, [doubling()], { cacheMaxBytes: 1_000_000 });
  for (let i = 0; i < 4; i++) await server.post("/infer", [1, 2, 3]);
  const page = await opened(t, server.url);
  await until(async () => (await answered(page)) === 4);
  assert.deepEqual(
    [await tile(page, "From the cache"), await tile(page, "From the cache", "detail")],
    ["75 %", "3 items, 3 runs saved"],
  );
  await page.locator("#limits").getByText("answered from the cache").waitFor();
  await page.getByLabel("Input for double").fill("1, 2, 3");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.locator("#result").getByText("It came from the cache.").waitFor();
  assert.deepEqual(await violations(page), []);
});

test("a model that fails is shown: in the playground with its message, and above everything", { skip }, async (t) => {
  const failing = { ...doubling("failing"), run: () => Promise.reject(new Error("the weights are gone")) };
  const server = await serving(t, [failing]);
  const page = await opened(t, server.url, {}, /status of 500/);
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.locator("#result").getByText("the weights are gone").waitFor();
  await page.locator("#verdict").getByText("100 % of items failed in the last minute").waitFor();
  assert.equal(await tile(page, "Not answered"), "1");
});

test("with a key set the page asks for it, and keeps it for this tab only", { skip }, async (t) => {
  const server = await serving(t, [doubling()], { apiKey: "open sesame" });
  const page = await openPage(t, server.url, {}, /status of 401/);
  const key = page.getByLabel("API key");
  await key.fill("wrong");
  await key.press("Enter");
  await page.getByText("The key is wrong.").waitFor();
  await key.fill("open sesame");
  await page.getByRole("button", { name: "Open" }).click();
  await live(page);
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.locator("#result").getByText("It ran alone.").waitFor();
  await page.reload();
  await live(page);
  assert.equal(await page.evaluate("localStorage.length"), 0);
  assert.equal(await page.evaluate("document.cookie"), "");
  await page.getByRole("button", { name: "Forget key" }).click();
  await key.waitFor();
  const other = await openPage(t, server.url, {}, /status of 401/);
  await other.getByLabel("API key").waitFor();
});

test("batchers of an app of your own: what they cost is shown, and no playground", { skip }, async (t) => {
  const lookUp = createBatcher((ids: number[]) => ids, { name: "look-ups", price: { perRun: 10, perItem: 1 } });
  const app = Fastify({ forceCloseConnections: true });
  atEnd(t, () => app.close());
  await app.register(dashboardPlugin, {
    prefix: "/batches",
    title: "Shop",
    batchers: [Object.assign(lookUp, { maxBatchSize: 32 })],
  });
  const url = await app.listen({ port: 0 });
  await lookUp.many([1, 2, 3, 4]);
  const page = await opened(t, `${url}/batches`);
  assert.equal(await page.locator("#limits").innerText(), "Batch size\nat most 32");
  const cost = "Cost since the start: 14, 3.50 an item, 68 % less than one by one.";
  assert.equal(await page.locator("#cost").innerText(), cost);
  assert.equal(await page.locator("#playground").isVisible(), false);
  assert.equal(await page.title(), "look-ups · Shop");
});

test("everything can be reached and used by keyboard", { skip }, async (t) => {
  const server = await serving(t, [measuringTexts(), doubling()]);
  const page = await opened(t, server.url);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter"); // Skip to the playground
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate("document.activeElement.id"), "input");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  await page.locator("#result").getByText("It ran alone.").waitFor();
  await page.getByRole("radio", { name: "measure" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.getByLabel("Input for double").waitFor();
});

for (const colorScheme of ["light", "dark"] as const) {
  test(
    `names, roles and contrast pass axe in ${colorScheme}, from a phone to a desk, and nothing needs scrolling sideways`,
    { skip },
    async (t) => {
      const server = await serving(t, [slowTexts(), doubling()]);
      const stop = load(server, 8);
      atEnd(t, stop);
      for (const [name, width] of [
        ["desk", 1440],
        ["tablet", 800],
        ["phone", 390],
        ["small-phone", 360],
      ] as const) {
        // prettier-ignore
        const page = await opened(t, server.url, { width, colorScheme });
        await page.getByRole("button", { name: "Send 200" }).click();
        await page.locator("#result .figure").waitFor();
        await until(async () => (await page.locator("#recent i").count()) > 20);
        const tooWide = await pixelsTooWide(page);
        assert.ok(tooWide <= 0, `${tooWide} px too wide at ${width}`);
        assert.deepEqual(await violations(page), []);
        await page.screenshot({ path: `${artefacts}${colorScheme}-${name}.png`, fullPage: true });
      }
    },
  );
}

test("a server that stops is shown at once, and the page comes back with it", { skip }, async (t) => {
  const first = await serving(t, [doubling()]);
  const page = await openPage(
    t,
    first.url,
    {},
    /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/,
  );
  await live(page);
  const port = Number(new URL(first.url).port);
  await first.close();
  await live(page, "Not connected");
  const notice = page.getByRole("alert").filter({ hasText: "The figures stand still" });
  await notice.waitFor();
  await page.screenshot({ path: `${artefacts}stopped.png` });
  assert.match((await page.locator("#main").getAttribute("class")) ?? "", /stale/);
  for (const colorScheme of ["dark", "light"] as const) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violations(page), [], `figures that stand still can be read (${colorScheme})`);
  }
  const second = await serving(t, [doubling(), measuringTexts()], { port });
  await live(page);
  await page.getByRole("radio", { name: "measure" }).waitFor();
  assert.equal(await notice.isVisible(), false);
  await second.post("/infer", [1, 2, 3]);
  await until(async () => (await answered(page)) === 1);
});

test("whatever models and errors are called, the page shows it as text", { skip }, async (t) => {
  const hostile = [
    "<img src=x onerror=alert(1)>",
    `"><script>alert(1)</script>`,
    "constructor",
    "__proto__",
    "\u202Eright to left \0 \uD800",
    "long ".repeat(2000),
  ];
  const names = [...hostile, ...Array.from({ length: 144 }, (_, i) => `model ${i}`)];
  const app = Fastify({ forceCloseConnections: true });
  atEnd(t, () => app.close());
  const batchers = names.map((name) =>
    Object.assign(
      createBatcher((items: number[]) => items, { name }),
      { maxBatchSize: 32 },
    ),
  );
  const reason = "<svg onload=alert(1)>";
  const state = () => ({ status: "failed", batchers: { [hostile[0]!]: { state: "<b>failed</b>", reason } } });
  await app.register(dashboardPlugin, { batchers, title: "<i>title</i>", state });
  const page = await openPage(t, await app.listen({ port: 0 }));
  await live(page, "Failed");
  assert.equal(await page.locator("#title").innerText(), "<i>title</i>");
  assert.equal(await page.locator("#models label").count(), names.length);
  assert.equal(await page.locator("#models label").first().innerText(), hostile[0]);
  assert.match(await page.locator("main").innerText(), /<svg onload=alert\(1\)>/);
  assert.equal(await page.locator("main img, main script, main svg[onload], main b:text-is('failed')").count(), 0);
});
