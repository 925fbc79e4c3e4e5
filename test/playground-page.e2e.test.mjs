import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import {
  closeBrowser,
  open,
  pixelsTooWide,
  skip,
  violations,
} from "../packages/sheaf-server/dist-test/dashboard/browser.js";
import { argumentsOf, codeOf } from "../scripts/playground/src/command.js";
import { pointsOf, tableOf } from "../scripts/playground/src/model.js";
import { presets } from "../scripts/playground/src/presets.js";
import { defaults, hashOf } from "../scripts/playground/src/settings.js";
import { root } from "../scripts/lib/files.mjs";
import { playgroundPage } from "../scripts/lib/playground.mjs";

after(closeBrowser);

const folder = `${root}/artifacts/playground`;
mkdirSync(folder, { recursive: true });
writeFileSync(`${folder}/index.html`, (await playgroundPage()).html);
const address = pathToFileURL(`${folder}/index.html`).href;

/** Waits until the page shows these settings, and its verdict. */
const settled = (page, settings) => page.locator(`body[data-settled="${hashOf(settings)}"]`).waitFor();
const cellsOf = (page) =>
  page.locator("#figures tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));

test(
  "every preset shows the digits, the code and the command of its numbers, from the file alone",
  { skip },
  async (t) => {
    const page = await open(t, "about:blank");
    const requests = [];
    page.on("request", (request) => requests.push(request.url()));
    await page.goto(address);
    for (const { title, settings } of presets) {
      await page.getByRole("button", { name: title }).click();
      await settled(page, settings);
      assert.deepEqual(await cellsOf(page), tableOf(await pointsOf(settings)));
      assert.equal(await page.locator("#command").textContent(), `npx sheaf ${argumentsOf(settings).join(" ")}`);
      assert.equal(await page.locator("#code").textContent(), codeOf(settings));
      assert.equal(new URL(page.url()).hash, hashOf(settings));
      assert.match(await page.locator("#story").innerText(), /\d/);
    }
    assert.deepEqual(requests.filter((url) => !url.startsWith("blob:")), [address]); // prettier-ignore
  },
);

test("a link restores the settings, and names those that it leaves out", { skip }, async (t) => {
  const settings = { ...defaults, rate: 333, slots: 2, lengths: true, seed: 9 };
  const page = await open(t, `${address}${hashOf(settings)}&slots=2000&nonsense=1`);
  await settled(page, settings);
  assert.deepEqual(await cellsOf(page), tableOf(await pointsOf(settings)));
  assert.equal(
    await page.locator("#ignored").innerText(),
    "Left out of the address: slots=2000: it must be a whole number from 1 to 16; nonsense: there is no such setting.",
  );
  assert.equal(await page.locator("output[for=rate]").textContent(), "333 /s");
});

test("a lone caller is told not to batch, to the eye and to a screen reader", { skip }, async (t) => {
  const { settings } = presets.find(({ name }) => name === "lone");
  const page = await open(t, address + hashOf(settings));
  await settled(page, settings);
  assert.equal(await page.locator("#word").innerText(), "Do not batch.");
  assert.match(await page.locator("#said").textContent(), /^Do not batch\. .* 10\.3 ms one at a time, 30\.3 ms with a window, 10\.3 ms by default\.$/); // prettier-ignore
  assert.match(
    await page.locator("canvas").first().getAttribute("aria-label"),
    /^One at a time: 1 calls? shares? a run/,
  );
});

test("the calls of every lane are drawn from the same moment on", { skip }, async (t) => {
  const page = await open(t, address + hashOf(presets.find(({ name }) => name === "lone").settings));
  const answered = () =>
    page
      .locator("#lanes .count")
      .evaluateAll((counts) => counts.map((count) => parseInt(count.textContent.split("· ")[1], 10)));
  let [alone, windowed, byDefault] = [NaN, 0, NaN];
  while (!(windowed >= 3)) [alone, windowed, byDefault] = await answered();
  assert.equal(byDefault, alone);
  // 10.3 ms each beside 30.3 ms each.
  assert.ok(alone <= 3 * (windowed + 1), `${alone} answered one at a time, ${windowed} with a window`);
});

test("every control is reached and moved by the keyboard alone", { skip }, async (t) => {
  const page = await open(t, `${address}#lengths=yes&tenants=5&patience=1000`);
  const reached = new Set();
  const wanted = await page
    .locator("button:visible, input:visible, select:visible, pre, .scroll")
    .evaluateAll((all) => all.map((one, at) => (one.dataset.at = String(at))));
  for (let i = 0; i < wanted.length + 8; i++) {
    await page.keyboard.press("Tab");
    const { at, outline } = await page.evaluate(() => {
      const { dataset, tagName } = document.activeElement;
      return {
        at: dataset.at,
        outline: tagName === "BODY" ? "solid" : getComputedStyle(document.activeElement).outlineStyle,
      };
    });
    reached.add(at);
    assert.equal(outline, "solid", `the focus is visible on ${at}`);
  }
  assert.deepEqual(wanted.filter((at) => !reached.has(at)), []); // prettier-ignore
  await page.locator("#rate").focus();
  await page.keyboard.press("End");
  await settled(page, { ...defaults, lengths: true, tenants: 5, patience: 1000, rate: 5000 });
  assert.equal(await page.locator("#rate").getAttribute("aria-valuetext"), "5,000 /s");
});

test("a reader who prefers less motion gets a still timeline; pause stops the calls", { skip }, async (t) => {
  const page = await open(t, "about:blank");
  const picture = () =>
    page
      .locator("canvas")
      .first()
      .evaluate((canvas) => canvas.toDataURL());
  const changes = async () => {
    const before = await picture();
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 400)));
    return (await picture()) !== before;
  };
  await page.emulateMedia({ reducedMotion: "reduce" });
  await page.goto(address);
  await settled(page, presets[1].settings);
  assert.equal(await page.getByRole("button", { name: "Timeline" }).getAttribute("aria-pressed"), "true");
  assert.equal(await changes(), false);
  await page.getByRole("button", { name: "Timeline" }).click();
  while (!(await changes()));
  await page.getByRole("button", { name: "Pause" }).click();
  while (await changes());
});

test("axe finds nothing wrong, light on a screen and dark on a phone", { skip }, async (t) => {
  const page = await open(t, "about:blank");
  for (const { settings } of presets) {
    await page.goto(address + hashOf(settings));
    await settled(page, settings);
    // Colours do not depend on the width.
    for (const [colorScheme, width] of [
      ["light", 1440],
      ["dark", 390],
    ]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      const look = `${colorScheme}, ${width} px, ${hashOf(settings)}`;
      assert.deepEqual(await violations(page), [], look);
      const tooWide = await pixelsTooWide(page);
      assert.ok(tooWide <= 0, `${tooWide} px too wide: ${look}`);
    }
  }
});

test("copying gives exactly the text that is shown", { skip }, async (t) => {
  const page = await open(t, address);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await settled(page, presets[1].settings);
  for (const id of ["code", "command", "address"]) {
    await page.locator(`[data-copies=${id}]`).click();
    await page.locator("#said", { hasText: "Copied." }).waitFor({ state: "attached" });
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await page.locator(`#${id}`).textContent());
  }
});
