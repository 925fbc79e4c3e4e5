// `node scripts/page-states.mjs [WORD…]`, after a build: pictures of the live page in the states that its first minutes go
// through, at three widths, light and dark, in artifacts/page/states. To be looked at; the tests hold what can be said in
// code. Without words all states are drawn, else those whose name holds one. Prints the page's sentences for each state.
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { root } from "./lib/files.mjs";

const ofServer = createRequire(`${root}/packages/sheaf-server/package.json`);
const { chromium } = ofServer("playwright-core");
const { createServer } = await import(`${root}/packages/sheaf-server/dist/index.js`);
const { serveModel } = await import(`${root}/packages/sheaf-server/dist/load/http/server-process.js`);

const folder = `${root}/artifacts/page/states`;
mkdirSync(folder, { recursive: true });
const words = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });

const costs = (fixedMs, perItemMs) => async (texts) => {
  await sleep(fixedMs + perItemMs * texts.length);
  return texts.map((text) => ({ vector: Float32Array.from({ length: 64 }, (_, i) => Math.sin(i * text.length)), tokens: 4, truncated: false })); // prettier-ignore
};
const texts = (name, run) => ({
  name,
  input: { kind: "text", maxTokens: 128 },
  output: { kind: "vector", length: 64 },
  run,
});
const settings = { port: 0, logLevel: "silent" };

async function inProcess(models, more = {}) {
  const server = await createServer({ models, settings: { ...settings, ...more } });
  const url = await server.listen();
  return { url, stop: () => server.close() };
}

async function command(model, flags = []) {
  const entry = `${root}/packages/sheaf-server/dist/cli/main.js`;
  const served = await serveModel({ entry, model, flags });
  return { url: served.origin, stop: () => served.stop() };
}

async function openPage(url) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && console.log("  console:", message.text())); // prettier-ignore
  await page.goto(url);
  return page;
}

async function picture(page, state) {
  const said = await page.evaluate(() =>
    [...document.querySelectorAll("#verdict, #verdict-why, #advice li, .tile, #limits, #result, #sizes-legend, #notice-text, #workers, #process")]
      .filter((shown) => shown.checkVisibility() && shown.innerText.trim() !== "")
      .map((shown) => shown.innerText.replace(/\s*\n\s*/g, " | ").slice(0, 300)),
  ); // prettier-ignore
  console.log(`## ${state}\n${said.map((line) => `- ${line}`).join("\n")}`);
  for (const width of [390, 800, 1440])
    for (const colorScheme of width === 800 ? ["light"] : ["light", "dark"]) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await sleep(250);
      const tooWide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (tooWide > 0) console.log(`  ${tooWide} px too wide at ${width}`);
      await page.screenshot({ path: `${folder}/${state}-${width}-${colorScheme}.png`, fullPage: true });
    }
  await page.setViewportSize({ width: 1440, height: 900 });
}

const send = (page) => page.getByRole("button", { name: "Send", exact: true }).click();
const sendMany = async (page) => {
  await page.getByRole("button", { name: "Send 200" }).click();
  await page.locator("#result .figure").waitFor();
};

async function loadFor(seconds, url, ratePerS, path = "/infer", bodyAt = () => '{"input": "The cat sits outside"}') {
  const until = performance.now() + 1000 * seconds;
  const open = new Set();
  while (performance.now() < until) {
    await sleep((-Math.log(1 - Math.random()) * 1000) / ratePerS);
    const headers = { "content-type": "application/json" };
    const reply = fetch(url + path, { method: "POST", headers, body: bodyAt() })
      .then(
        (response) => response.arrayBuffer(),
        () => undefined,
      ) // prettier-ignore
      .finally(() => open.delete(reply));
    open.add(reply);
  }
  await Promise.all(open);
}

const scenes = {
  // As a new user: the built-in model, behind the real command.
  async fresh() {
    const server = await command("use-lite");
    const page = await openPage(server.url);
    await page.locator("#status", { hasText: "Ready" }).waitFor();
    await picture(page, "fresh-1-ready");
    await send(page);
    await page.locator("#result .figure").waitFor();
    await sleep(1500);
    await picture(page, "fresh-2-sent-one");
    await sendMany(page);
    await picture(page, "fresh-3-sent-200");
    await sleep(2000);
    await sendMany(page);
    await sleep(1200);
    await picture(page, "fresh-4-sent-200-twice");
    await sleep(5000);
    await picture(page, "fresh-5-after-5s");
    await sleep(62_000);
    await picture(page, "fresh-6-after-60s");
    await server.stop();
  },
  async burst() {
    const server = await command("use-lite");
    const page = await openPage(server.url);
    await page.locator("#status", { hasText: "Ready" }).waitFor();
    await sendMany(page);
    await sleep(1500);
    await picture(page, "burst-first-thing");
    await server.stop();
  },
  async load() {
    const server = await inProcess([texts("embeddings", costs(24, 0.6))]);
    const page = await openPage(server.url);
    const load = loadFor(45, server.url, 250);
    await sleep(6000);
    await picture(page, "load-1-6s");
    await sleep(30_000);
    await picture(page, "load-2-40s");
    await load;
    await server.stop();
  },
  async cache() {
    const server = await inProcess([texts("embeddings", costs(24, 0.6))], { cacheMaxBytes: 10_000_000 });
    const page = await openPage(server.url);
    const bodies = Array.from({ length: 40 }, (_, i) => `{"input": "Text ${i}"}`);
    const bodyAt = () => bodies[Math.floor(Math.random() ** 3 * 200)] ?? `{"input": "${Math.random()}"}`;
    await loadFor(8, server.url, 150, "/infer", bodyAt);
    await send(page);
    await page.locator("#result .figure").waitFor();
    await send(page);
    await sleep(1500);
    await picture(page, "cache-1-some-hits");
    await server.stop();
  },
  async nothing() {
    const server = await inProcess([texts("no-fixed-part", costs(0, 3))]);
    const page = await openPage(server.url);
    const load = loadFor(40, server.url, 250);
    await sleep(35_000);
    await picture(page, "nothing-to-gain");
    await load;
    await server.stop();
  },
  async several() {
    const names = ["embeddings", "second-opinion", "a-model-with-a-rather-long-name-v2"];
    const server = await inProcess(names.map((name) => texts(name, costs(24, 0.6))));
    const page = await openPage(server.url);
    const load = Promise.all([loadFor(9, server.url, 150), loadFor(9, server.url, 5, "/infer/second-opinion")]);
    await sleep(8000);
    await send(page);
    await page.locator("#result .figure").waitFor();
    await picture(page, "several-models");
    await load;
    await server.stop();
  },
  async trouble() {
    const failing = texts("failing", () => Promise.reject(new Error("the weights are gone")));
    let server = await inProcess([failing]);
    let page = await openPage(server.url);
    await page.locator("#status", { hasText: "Ready" }).waitFor();
    await send(page);
    await sleep(1500);
    await picture(page, "trouble-1-model-fails");
    await server.stop();
    await sleep(800);
    await picture(page, "trouble-2-server-gone");

    server = await inProcess([texts("slow", costs(400, 1))], { queueMaxSize: 50 });
    page = await openPage(server.url);
    const load = loadFor(6, server.url, 300);
    await sleep(5000);
    await picture(page, "trouble-3-overloaded");
    await load;
    await server.stop();
  },
  async workers() {
    const server = await command("use-lite", ["--worker-isolation", "process", "--workers", "2"]);
    const page = await openPage(server.url);
    await page.locator("#status", { hasText: "Ready" }).waitFor();
    await picture(page, "workers-1-ready");
    // The command is a child of this process, its workers are children of the command.
    const childrenOf = (pid) =>
      readdirSync(`/proc/${pid}/task`)
        .flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").trim().split(" "))
        .filter((child) => child !== "");
    const workers = childrenOf(process.pid).flatMap((pid) =>
      readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("serve") ? childrenOf(pid) : [],
    );
    for (const pid of workers) process.kill(Number(pid), "SIGKILL");
    await page.locator("#status", { hasText: "Restarting" }).waitFor();
    await picture(page, "workers-2-restarting");
    await page.locator("#status", { hasText: "Ready" }).waitFor();
    await sleep(1500);
    await picture(page, "workers-3-restarted");
    await server.stop();
  },
  async loading() {
    const ready = texts("slow-to-load", {
      slots: 1,
      ready: () => sleep(20_000),
      run: costs(10, 1),
      close: async () => undefined,
    });
    const server = await createServer({ models: [ready], settings });
    const url = await server.listen();
    const page = await openPage(url);
    await page.locator("#status", { hasText: "Loading" }).waitFor();
    await picture(page, "loading");
    await server.close();

    const failed = await createServer({ models: [texts("failed", { slots: 1, ready: () => Promise.reject(new Error("model.onnx is not an ONNX file")), run: costs(1, 1), close: async () => undefined })], settings }); // prettier-ignore
    const page2 = await openPage(await failed.listen());
    await page2.locator("#status", { hasText: "Failed" }).waitFor();
    await picture(page2, "failed");
    await failed.close();
  },
  async key() {
    const server = await inProcess([texts("embeddings", costs(5, 1))], { apiKey: "open sesame" });
    const page = await openPage(server.url);
    await page.getByLabel("API key").waitFor();
    await picture(page, "key");
    await server.stop();
  },
};

for (const [name, scene] of Object.entries(scenes))
  if (words.length === 0 || words.some((word) => name.includes(word))) await scene();
await browser.close();
