import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { publishBench } from "../../dist/load/bench/output.js";
import { colourOf, onDark } from "../../dist/load/report/chart.js";
import { loadCharts } from "../../dist/load/report/load-charts.js";
import type { LoadResult } from "../../dist/load/result.js";
import { comparisons } from "../../dist/load/comparison.js";
import { closeBrowser, open, pixelsTooWide, skip, violations } from "../dashboard/browser.js";
import { configured } from "./results.js";
import { temporaryFolder } from "../folder.js";
import { collected } from "./streams.js";

after(closeBrowser);

const steady = [
  configured("unbatched", { p50: 30, p99: 90 }),
  configured("fifo", { p50: 34, p99: 60 }),
  configured("auto", { p50: 5, p99: 12 }),
];
const results = [...steady, ...steady.map((result) => ({ ...result, pattern: "burst" as const }))];

/** The address of a report of the results. */
async function reported(t: TestContext): Promise<string> {
  const folder = temporaryFolder(t);
  const report = join(folder, "report.html");
  await publishBench({ rate: 100, duration: 10_000, warmUp: 0, seed: 1, report }, [], results, [], collected());
  return pathToFileURL(report).href;
}

test("every colour of a chart stands out from its page, light and dark", () => {
  const luminance = (colour: string): number => {
    const [red, green, blue] = [1, 3, 5].map((at) => {
      const share = parseInt(colour.slice(at, at + 2), 16) / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
  };
  const contrast = (colour: string, page: string): number => {
    const [dark, light] = [luminance(colour), luminance(page)].sort((a, b) => a - b);
    return (light! + 0.05) / (dark! + 0.05);
  };
  const names = Array.from({ length: 8 }, (_, i) => `policy ${i}`);
  const { range } = (colourOf(names) as { scale: { range: string[] } }).scale;
  for (const colour of range) {
    assert.ok(contrast(colour, "#ffffff") >= 3, `${colour} on white`);
    assert.ok(contrast(onDark[colour]!, "#16181d") >= 3, `${colour} as ${onDark[colour]} on the dark page`);
  }
});

for (const colorScheme of ["light", "dark"] as const) {
  test(
    `a report is readable in ${colorScheme}, from a phone to a desk, without scrolling sideways`,
    { skip },
    async (t) => {
      const url = await reported(t);
      for (const width of [390, 800, 1440]) {
        const page = await open(t, url, { width, colorScheme });
        const tooWide = await pixelsTooWide(page);
        assert.ok(tooWide <= 0, `${tooWide} px too wide at ${width}`);
        assert.deepEqual(await violations(page), []);
        // axe does not judge text in pictures.
        const faint = await page.evaluate(contrasts);
        assert.deepEqual(faint.filter(({ what, ratio }) => ratio < (what.startsWith("text") ? 4.5 : 3)), [], `at ${width}`); // prettier-ignore
        assert.ok(faint.length > 20, "there is text and colour to judge");
        const [chart, column] = await Promise.all(
          ["figure svg:visible", "main"].map(async (selector) => (await page.locator(selector).first().boundingBox())!),
        );
        assert.ok(chart!.width > 0.9 * (column!.width - 32), "a chart is as wide as the page");
      }
    },
  );
}

test("bars of 100 % are left out, and only rates that rise are joined to a line against latency", () => {
  const names = (all: readonly LoadResult[]): string[] => loadCharts(all).map(({ name }) => name);
  const one = configured("auto", { p50: 5, p99: 9 });
  const phases = [1, 2, 3].map((level) => ({ ...one.phases[0]!, offeredPerS: 100 * level }));
  assert.ok(!names([one]).includes("success-rate"));
  assert.ok(names([one, { ...one, successRate: 0.99 }]).includes("success-rate"));
  const against = "throughput-against-latency";
  assert.ok(
    !names([
      { ...one, pattern: "burst", phases },
      { ...one, phases },
    ]).includes(against),
  );
  assert.ok(names([{ ...one, pattern: "step", phases }]).includes(against));
  const charts = loadCharts([
    { ...one, pattern: "ramp", phases },
    { ...one, pattern: "burst", phases },
  ]);
  const { spec } = charts.find(({ name }) => name === against)!;
  const drawn = JSON.stringify(spec({ width: 600, columns: 2 }));
  assert.ok(drawn.includes("auto ramp") && !drawn.includes("auto burst"), drawn);
});

test("a report says one sentence for each pattern, with that pattern's rows below it", { skip }, async (t) => {
  const page = await open(t, await reported(t));
  assert.deepEqual(await page.locator(".answer").allInnerTexts(), [...comparisons(results).values()]);
  assert.deepEqual((await page.locator("section h2").allInnerTexts()).slice(0, 2), ["Steady", "Burst"]);
  const rows = await page.locator("section").first().locator("tbody th").allInnerTexts();
  assert.deepEqual(rows, ["unbatched", "fifo", "auto"]);
});

/** Contrast of every text and coloured mark of the pictures that are seen, with the page behind it. */
function contrasts(): { what: string; ratio: number }[] {
  const { document, getComputedStyle } = globalThis as any;
  const luminance = (colour: string): number => {
    const [r, g, b] = colour.match(/[\d.]+/g)!.map((part) => {
      const value = Number(part) / 255;
      return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
  };
  const page = luminance(getComputedStyle(document.body).backgroundColor);
  const marks = "svg text, .mark-symbol path, .mark-line path, .mark-rect path, .mark-rule line";
  return [...document.querySelectorAll(marks)]
    .filter((mark: any) => mark.checkVisibility() && mark.closest(".role-axis-grid") === null)
    .flatMap((mark: any) => {
      const { fill, stroke } = getComputedStyle(mark);
      const colour = [fill, stroke].find((value) => value.startsWith("rgb("));
      if (colour === undefined) return [];
      const own = luminance(colour);
      const ratio = (Math.max(own, page) + 0.05) / (Math.min(own, page) + 0.05);
      return [{ what: `${mark.tagName} ${mark.textContent} ${colour}`, ratio }];
    });
}
