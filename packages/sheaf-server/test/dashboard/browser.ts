import assert from "node:assert/strict";
import { accessSync } from "node:fs";
import type { TestContext } from "node:test";
import axe from "axe-core";
import { chromium, type Browser, type Page } from "playwright-core";
import { atEnd } from "../at-end.js";

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** False, or why these tests are skipped; in CI they are not. */
export const skip: string | false = (() => {
  try {
    accessSync(executablePath);
    return false;
  } catch {
    return process.env["CI"] === "true"
      ? false
      : `${executablePath} is not there (apt-get install chromium, or set CHROMIUM)`;
  }
})();

let browser: Promise<Browser> | undefined;
/** One browser for a test file: close it with `closeBrowser` at its end. */
const theBrowser = (): Promise<Browser> =>
  // Chromium does not sandbox itself as root, nor in most containers.
  (browser ??= chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] }));

export const closeBrowser = async (): Promise<void> => (await browser)?.close();

export interface Look {
  readonly width?: number;
  readonly height?: number;
  readonly colorScheme?: "light" | "dark";
}

/** Opens a page in a profile of its own. At the end of the test nothing unexpected may stand in its console. */
export async function open(t: TestContext, url: string, look: Look = {}, expected: RegExp = /^$/): Promise<Page> {
  const { width = 1280, height = 900, colorScheme = "light" } = look;
  const context = await (await theBrowser()).newContext({ viewport: { width, height }, colorScheme });
  const page = await context.newPage();
  // The tests' own limit ends what takes too long: a crowded machine may be slow.
  page.setDefaultTimeout(0);
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  atEnd(t, async () => {
    await context.close();
    assert.deepEqual(complaints.filter((text) => !expected.test(text)), []); // prettier-ignore
  });
  await page.goto(url);
  return page;
}

/** Waits until the page is connected. */
export const live = async (page: Page, status = "Ready"): Promise<void> =>
  page.locator("#status", { hasText: status }).waitFor();

/** A tile's value or detail, by its title. */
export const tile = async (page: Page, title: string, part: "figure" | "detail" = "figure"): Promise<string> =>
  page
    .locator(".tile", { has: page.locator("dt", { hasText: new RegExp(`^${title}`) }) })
    .locator(`.${part}`)
    .innerText();

/** The number a text starts with, thousands apart. */
export const numberIn = (text: string): number => Number(/[\d,]+(?:\.\d+)?/.exec(text)?.[0].replaceAll(",", ""));

/** By how many pixels the page is wider than its view; 0 where nothing needs scrolling sideways. */
export const pixelsTooWide = (page: Page): Promise<number> =>
  page.evaluate<number>("document.documentElement.scrollWidth - document.documentElement.clientWidth");

/** What axe finds wrong with the page: contrast, names and roles. */
export async function violations(page: Page): Promise<unknown> {
  await page.evaluate(axe.source);
  const found = (await page.evaluate("axe.run()")) as {
    violations: { id: string; nodes: { html: string; failureSummary: string }[] }[];
  };
  return found.violations.map(({ id, nodes }) => [
    id,
    nodes.map(({ html, failureSummary }) => `${html}: ${failureSummary}`),
  ]);
}
