import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";

export interface Asset {
  readonly type: string;
  readonly content: Buffer;
  readonly etag: string;
}

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

// The sources as they are: the page has no build step. They are beside `dist` in the package too.
const page = join(import.meta.dirname, "..", "..", "src", "dashboard", "page");
const chartLibrary = join(dirname(createRequire(import.meta.url).resolve("uplot/package.json")), "dist");

const files: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    readdirSync(page)
      .filter((name) => extname(name) in types)
      .map((name) => [name, join(page, name)]),
  ),
  "uPlot.css": join(chartLibrary, "uPlot.min.css"),
  "uPlot.js": join(chartLibrary, "uPlot.esm.js"),
};

export const assetNames: readonly string[] = Object.keys(files);

export function readAssets(): ReadonlyMap<string, Asset> {
  return new Map(
    Object.entries(files).map(([name, path]) => {
      const content = readFileSync(path);
      const etag = `"${createHash("sha256").update(content).digest("base64url").slice(0, 22)}"`;
      return [name, { type: types[extname(name)]!, content, etag }];
    }),
  );
}
