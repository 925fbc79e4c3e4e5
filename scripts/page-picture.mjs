// `node scripts/page-picture.mjs`, after a build: makes docs/guide/images/page.jpg, the picture of the live page. The model
// behind it plays a remote service: a run takes 24 ms and 0.6 ms a text, so the machine hardly shows. About 80 s.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { root } from "./lib/files.mjs";

const ofServer = createRequire(`${root}/packages/sheaf-server/package.json`);
const { chromium } = ofServer("playwright-core");
const { createServer } = await import(`${root}/packages/sheaf-server/dist/index.js`);

const seconds = 78;
const embeddings = {
  name: "embeddings",
  input: { kind: "text", maxTokens: 128 },
  output: { kind: "vector", length: 256 },
  run: async (texts) => {
    await sleep(24 + 0.6 * texts.length);
    return texts.map((text) => {
      const vector = Float32Array.from({ length: 256 }, (_, i) => Math.sin(i * i + text.length) * Math.cos(i / 40));
      return { vector, tokens: 4, truncated: false };
    });
  },
};
const settings = { port: 0, logLevel: "silent" };
const server = await createServer({ models: [embeddings, { ...embeddings, name: "second-opinion" }], settings });
const url = await server.listen();

const startedAtMs = performance.now();
const elapsedS = () => (performance.now() - startedAtMs) / 1000;
const send = async (path) => {
  const headers = { "content-type": "application/json" };
  const reply = await fetch(url + path, { method: "POST", headers, body: '{"input": "The cat sits outside"}' });
  await reply.arrayBuffer();
};
const load = (async () => {
  const open = new Set();
  while (elapsedS() < seconds) {
    const ratePerS = elapsedS() < 4 ? 8 : 170 + 110 * Math.sin(elapsedS() / 8) + (elapsedS() % 31 > 27 ? 260 : 0);
    await sleep((-Math.log(1 - Math.random()) * 1000) / ratePerS);
    const reply = send(Math.random() < 0.1 ? "/infer/second-opinion" : "/infer").finally(() => open.delete(reply));
    open.add(reply);
  }
  await Promise.all(open);
})();

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 960 }, colorScheme: "light" });
await page.goto(url);
await sleep((seconds - 4) * 1000);
await page.getByRole("button", { name: "Send", exact: true }).click();
await sleep(1500);
await page.screenshot({ path: `${root}/docs/guide/images/page.jpg`, type: "jpeg", quality: 84 });
await page.screenshot({ path: `${root}/artifacts/page/picture.png` });
await browser.close();
await load;
await server.close();
