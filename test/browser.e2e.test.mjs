// The core in a browser: the behaviours that every runtime shares, bundled as a user's bundler does it, in Chromium.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { build } from "esbuild";
import { closeBrowser, open, skip } from "../packages/sheaf-server/dist-test/dashboard/browser.js";
import { root } from "../scripts/lib/files.mjs";

after(closeBrowser);

test("the core behaves in Chromium as everywhere else", { skip }, async (t) => {
  const { outputFiles } = await build({
    stdin: {
      contents: `
        import * as sheaf from "sheaf";
        import { outcomesOf } from "./behaviours.mjs";
        import { behavioursOf } from "./core-behaviours.mjs";
        globalThis.outcomes = () => outcomesOf(behavioursOf(sheaf));`,
      resolveDir: `${root}/scripts/prove/lib`,
    },
    bundle: true,
    write: false,
    platform: "browser",
    format: "iife",
  });
  const page = await open(t, "about:blank");
  await page.addScriptTag({ content: outputFiles[0].text });
  const outcomes = await page.evaluate("outcomes()");
  assert.ok(outcomes.length > 5);
  assert.deepEqual(outcomes.filter(({ verdict }) => verdict !== "ok"), []); // prettier-ignore
});
