// `node scripts/playground-picture.mjs`, after `npm run playground`: makes docs/guide/images/would-it-pay.jpg, the verdict and the
// calls of "A burst" a few seconds into its playback.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { root } from "./lib/files.mjs";

const { chromium } = createRequire(`${root}/packages/sheaf-server/package.json`)("playwright-core");

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1200, height: 1300 }, colorScheme: "light" });
await page.goto(`${pathToFileURL(`${root}/playground/dist/index.html`)}#pattern=burst&rate=60`);
await page.locator("body[data-settled]").waitFor();
await sleep(Number(process.argv[2] ?? 4000));
const [from, to] = [await page.locator("#verdict").boundingBox(), await page.locator("#stage").boundingBox()];
const margin = 12;
const clip = {
  x: from.x - margin,
  y: from.y - margin,
  width: from.width + 2 * margin,
  height: to.y + to.height - from.y + 2 * margin,
};
await page.screenshot({ path: `${root}/docs/guide/images/would-it-pay.jpg`, type: "jpeg", quality: 70, clip });
await browser.close();
