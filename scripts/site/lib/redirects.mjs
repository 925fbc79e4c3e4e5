import { routeOf } from "./pages.mjs";

/** Pages that were merged or moved: the document that was there, and the document, with its heading, that has its text now. */
const moves = {
  "docs/guide/cache.md": "docs/guide/serving.md#the-result-cache",
  "docs/guide/clients.md": "docs/reference/clients.md",
  "docs/guide/local-models.md": "docs/guide/text-models.md",
  "docs/guide/measuring.md": "docs/guide/capacity.md",
  "docs/guide/models-folder.md": "docs/guide/models.md#a-folder-of-models",
  "docs/guide/ordering.md": "docs/guide/results.md#order",
  "docs/guide/proofs.md": "docs/reports/proofs.md",
  "docs/guide/rate-limits.md": "docs/guide/embedding-apis.md#rate-limits",
  "docs/guide/scaling-out.md": "docs/guide/fleet.md#one-queue-or-several",
  "docs/guide/serverless.md": "docs/guide/runtimes.md#lambda-cloud-functions-vercel",
  "docs/guide/shared-prefixes.md": "docs/guide/text-models.md#prompts-with-shared-prefixes",
  "docs/guide/slo.md": "docs/guide/capacity.md#how-many-workers",
  "docs/guide/tuning.md": "docs/guide/capacity.md#what-to-set",
};

/** The old addresses: `{ from, to }`, from `guide/slo.html` to `/guide/capacity.html#how-many-workers`. */
export const redirects = (base = "/") =>
  Object.entries(moves).map(([source, target]) => {
    const [document, heading] = target.split("#");
    const hash = heading === undefined ? "" : `#${heading}`;
    return { from: addressOf(source), to: `${base}${addressOf(document)}${hash}` };
  });

/** A page that leads to another address, with and without JavaScript; search engines keep only the new address. */
export const redirectPage = (to) => `<!doctype html>
<html lang="en">
<title>Moved</title>
<meta name="robots" content="noindex">
<link rel="canonical" href="${to}">
<link rel="icon" href="data:,">
<meta http-equiv="refresh" content="0; url=${to}">
<p>This page has moved: <a href="${to}">${to}</a></p>
</html>
`;

const addressOf = (document) => routeOf(document).replace(/\.md$/, ".html");
