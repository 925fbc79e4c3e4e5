import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { root } from "../../../lib/files.mjs";
import { tableRows } from "../../../lib/markdown.mjs";
import { entryPoints } from "../../../lib/public-exports.mjs";
import { summaryOf } from "../navigation.mjs";
import { repository } from "../pages.mjs";
import { outlineOf, pageOf } from "./page.mjs";
import { readExports } from "./read.mjs";

/** `api/node.md` of sheaf/node; the packages themselves are `api/sheaf.md` and `api/sheaf-server.md`. */
const routeOf = (specifier) => `api/${specifier.replace(/^sheaf\//, "")}.md`;

/** The purpose of every entry point, from the library's README and the server's package.json. */
function readPurposes() {
  const rows = tableRows(readFileSync(`${root}/packages/sheaf/README.md`, "utf8"), "entry point");
  const { description } = JSON.parse(readFileSync(`${root}/packages/sheaf-server/package.json`, "utf8"));
  return new Map([
    ...rows.map(([name, purpose]) => [name.replaceAll("`", ""), purpose]),
    ["sheaf-server", description],
  ]);
}

/**
 * The pages of the public entry points of both packages, as `siteOf` has pages, with the first that lists them; and the
 * sidebar's group. Needs a build.
 */
export async function apiPages() {
  const points = ["sheaf", "sheaf-server"].flatMap(entryPoints);
  const purposes = readPurposes();
  const entries = readExports(points).map((entry) => ({ ...entry, outline: outlineOf(entry) }));
  const addressIn = (entry, name) => {
    const anchor = entry.outline.anchors.get(name);
    return anchor && `/${routeOf(entry.specifier)}#${anchor}`;
  };
  // A page's own name wins, then the library's, which every entry point builds on.
  const inAny = (entry, find) => [entry, ...entries].map(find).find((address) => address !== undefined);
  const linksFor = (entry) => ({
    linkTo: (symbol) =>
      inAny(entry, (other) => {
        const exported = other.exports.find((one) => one.symbol === symbol);
        return exported && addressIn(other, exported.name);
      }),
    linkToName: (name) => inAny(entry, (other) => addressIn(other, name)),
  });

  const pages = await Promise.all(
    entries.map(async (entry) => {
      const { specifier } = entry;
      const purpose = purposes.get(specifier);
      const markdown = await pageOf(specifier, purpose, entry.outline, linksFor(entry));
      const edit = sourceOf(points, specifier);
      return {
        route: routeOf(specifier),
        title: specifier,
        purpose,
        summary: summaryOf(markdown),
        edit,
        frontmatter: { pageClass: "api" },
        markdown,
      };
    }),
  );
  const items = pages.map(({ route, title }) => ({ text: title, link: `/${route}` }));
  return {
    pages: [overview(pages), ...pages],
    group: { text: "API", items: [{ text: "Overview", link: "/api/index.md" }, ...items] },
  };
}

/** The source of an entry point, at the code host. */
function sourceOf(points, specifier) {
  const { types } = points.find((point) => point.specifier === specifier);
  const source = relative(root, types).replace("/dist/", "/src/");
  return `${repository}/edit/main/${source.replace(/\.d\.ts$/, ".ts")}`;
}

function overview(pages) {
  const summary = "Every name that the two packages export, by entry point, with its docstring.";
  const rows = pages.map(({ route, title, purpose }) => `| [${title}](/${route}) | ${purpose} |`);
  const markdown = ["# API", "", summary, "", "| entry point | exports |", "| - | - |", ...rows, ""].join("\n");
  return {
    route: "api/index.md",
    title: "API",
    summary,
    edit: `${repository}/edit/main/packages/sheaf/README.md`,
    markdown,
  };
}
