// The built site, served on a free port, in Chromium: `npm run site` comes first.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { after, test } from "node:test";
import { root } from "../../lib/files.mjs";
import {
  closeBrowser,
  open,
  pixelsTooWide,
  skip,
  violations,
} from "../../../packages/sheaf-server/dist-test/dashboard/browser.js";

const dist = `${root}/scripts/site/dist`;
assert.ok(existsSync(`${dist}/index.html`), "run npm run site first");

const types = {
  ".css": "text/css",
  ".html": "text/html",
  ".js": "text/javascript",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};
const server = createServer((request, reply) => {
  const path = decodeURIComponent(new URL(request.url, "http://site.invalid").pathname);
  const file = join(dist, path.endsWith("/") ? `${path}index.html` : path);
  if (!existsSync(file)) return reply.writeHead(404).end();
  return reply.writeHead(200, { "content-type": types[extname(file)] ?? "text/plain" }).end(readFileSync(file));
});
await new Promise((resolve) => {
  server.listen(0, "127.0.0.1", resolve);
});
const origin = `http://127.0.0.1:${server.address().port}`;
after(async () => {
  await closeBrowser();
  server.close();
});

const kinds = {
  home: "/",
  "a guide page": "/guide/fleet.html",
  "a reference page": "/reference/environment.html",
};

/** Opens a page, and waits until it has come to life: then its switch has a name, and its keys work. */
async function openLive(t, path, options) {
  const page = await open(t, origin + path, options);
  await page.locator('.VPSwitchAppearance[title^="Switch"]').first().waitFor({ state: "attached" });
  return page;
}

for (const [kind, path] of Object.entries(kinds))
  for (const colorScheme of ["light", "dark"])
    test(
      `${kind} in ${colorScheme} passes axe, and nothing needs scrolling sideways, on a desk and on a phone`,
      { skip },
      async (t) => {
        for (const width of [1440, 390]) {
          const page = await openLive(t, path, { width, colorScheme });
          assert.equal(
            await page.evaluate("document.documentElement.classList.contains('dark')"),
            colorScheme === "dark",
          );
          const tooWide = await pixelsTooWide(page);
          assert.ok(tooWide <= 0, `${tooWide} px too wide at ${width}`);
          assert.deepEqual(await violations(page), []);
        }
      },
    );

test("a wide table scrolls inside itself on a phone", { skip }, async (t) => {
  const page = await open(t, `${origin}/reference/environment.html`, { width: 390 });
  const table = page.locator(".vp-doc table").first();
  const [inside, outside] = await table.evaluate(({ scrollWidth, clientWidth }) => [scrollWidth, clientWidth]);
  assert.ok(inside > outside && outside <= 390, `${inside} px in ${outside} px`);
});

test("search finds an option in the reference, and asks nobody else for it", { skip }, async (t) => {
  const page = await openLive(t, "/");
  const elsewhere = [];
  page.on("request", (request) => void (request.url().startsWith(origin) || elsewhere.push(request.url())));
  await page.keyboard.press("Control+k");
  await page.locator("#localsearch-input").fill("maxBatchWeight");
  const results = page.locator("#localsearch-list a");
  await results.first().waitFor();
  const found = await results.evaluateAll((all) => all.map((link) => link.getAttribute("href")));
  assert.ok(found.some((address) => address.startsWith("/reference/options.html")), found.join()); // prettier-ignore
  await page.keyboard.press("Enter");
  await page.waitForURL(/\.html#/);
  assert.deepEqual(elsewhere, []);
});

test("a page offers to edit its source", () => {
  const page = readFileSync(`${dist}/guide/fleet.html`, "utf8");
  assert.match(page, /href="[^"]+\/edit\/main\/docs\/guide\/fleet\.md"/);
});

test("licences.txt has a text for everything in the site", () => {
  const text = readFileSync(`${dist}/licences.txt`, "utf8");
  for (const name of ["vue", "vitepress", "minisearch", "mark.js", "@fontsource-variable/inter"])
    assert.match(text, new RegExp(`^${name} \\d`, "m"));
});
