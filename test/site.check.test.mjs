// The pages of the site before they are rendered. The built site is tested in scripts/site/test, by .ci/run.
import assert from "node:assert/strict";
import { test } from "node:test";
import { documents } from "../scripts/lib/docs.mjs";
import { root } from "../scripts/lib/files.mjs";
import { anchors, links } from "../scripts/lib/markdown.mjs";
import { repository, routeOf, targetOf } from "../scripts/site/lib/pages.mjs";
import { rewritten } from "../scripts/site/lib/rewrite.mjs";
import { fileOf, siteOf } from "../scripts/site/lib/site.mjs";

const site = siteOf();
const pageAt = new Map(site.pages.map((page) => [`/${page.route}`, page]));
const source = "docs/guide/made-up.md";

test("every document is a page, but for those of packages, deploy, bench and test", () => {
  const rest = documents()
    .map((file) => file.slice(root.length + 1))
    .filter((path) => routeOf(path) === undefined);
  assert.deepEqual(
    rest.filter((path) => !/^(?:packages|deploy|bench|test)\//.test(path)),
    [],
  );
  assert.ok(site.pages.length > 60, `only ${site.pages.length} pages`);
  assert.equal(pageAt.size, site.pages.length, "two pages have one address");
});

test("every page has a title and the place to edit it", () => {
  for (const { route, title, edit } of site.pages) {
    assert.ok(title.length > 1, route);
    assert.ok(edit.startsWith(`${repository}/edit/main/`), route);
  }
});

test("every link of every page to another leads to a page, and to a heading of it", () => {
  const dead = site.pages.flatMap(({ route, markdown }) =>
    links(markdown)
      .filter((target) => /^[/#]/.test(target))
      .filter((target) => isDead(target, `/${route}`))
      .map((target) => `${route}: ${target}`),
  );
  assert.deepEqual(dead, []);
});

function isDead(target, from) {
  const [path, anchor] = target.split("#");
  const page = pageAt.get(path === "" ? from : path);
  if (page === undefined) return !site.files.some((file) => file === `docs${path}`);
  return anchor !== undefined && !anchors(page.markdown).includes(anchor);
}

test("every page but the first stands in a sidebar, and every link of bar and sidebars is a page", () => {
  const { nav, sidebar } = site.navigation;
  const listed = Object.values(sidebar).flatMap((groups) =>
    groups.flatMap(({ items }) => items.map(({ link }) => link)),
  );
  assert.deepEqual([...pageAt.keys()].filter((route) => route !== "/index.md" && !listed.includes(route)), []); // prettier-ignore
  const folders = nav.map(({ link }) => link);
  const all = [...listed, ...folders.map((folder) => `${folder}index.md`)];
  assert.deepEqual(all.filter((link) => !pageAt.has(link)), []); // prettier-ignore
});

test("a link leads to the page, the file or the code host, with its anchor", () => {
  for (const [target, url] of [
    ["fleet.md", "/guide/fleet.md"],
    ["fleet.md#start-one", "/guide/fleet.md#start-one"],
    ["README.md", "/guide/index.md"],
    ["../../README.md", "/index.md"],
    ["../../ARCHITECTURE.md#words", "/project/architecture.md#words"],
    ["../decisions.md", "/project/decisions.md"],
    ["../reports/slo/README.md", "/reports/slo.md"],
    ["../reports/mlp/overview.svg", "/reports/mlp/overview.svg"],
    ["../reference", "/reference/index.md"],
    ["../../examples/python", "/examples/python.md"],
    ["../../examples/hello", `${repository}/tree/main/examples/hello`],
    ["../../packages/sheaf/src/index.ts", `${repository}/blob/main/packages/sheaf/src/index.ts`],
    ["https://example.org/x.md", "https://example.org/x.md"],
    ["#here", "#here"],
  ])
    assert.equal(targetOf(source, target).url, url, target);
  assert.throws(() => targetOf(source, "gone.md"), { message: `${source}: dead link gone.md` });
});

test("links, pictures, comments and outputs are rewritten, code is not", () => {
  const markdown = [
    "A [`link` with code](fleet.md), [the report](../reports/mlp.html), [one by name][1] and `[none](fleet.md)`.",
    "",
    "![a chart](../reports/mlp/overview.svg)",
    "",
    '<a href="fleet.md">fleet</a><!-- ts: declare const x: number; -->',
    "",
    "```text output",
    "[not](a-link.md)",
    "```",
    "",
    "[1]: ../reference/errors.md",
  ].join("\n");
  const page = rewritten({ source, markdown }, "/sheaf/");
  const expected = markdown
    .replace("](fleet.md), ", "](/guide/fleet.md), ")
    .replace("[the report](../reports/mlp.html)", '<a href="/sheaf/reports/mlp.html" target="_self">the report</a>')
    .replace("../reports/mlp/", "/reports/mlp/")
    .replace('"fleet.md"', '"/guide/fleet.md"')
    .replace(/<!--.*-->/, "")
    .replace("```text output", "```output")
    .replace("../reference/errors.md", "/reference/errors.md");
  assert.equal(page.markdown, expected);
  assert.deepEqual(page.files, ["docs/reports/mlp.html", "docs/reports/mlp/overview.svg"]);
});

test("a page's file gives VitePress its title and place to edit", () => {
  const [, head] = fileOf(pageAt.get("/guide/fleet.md")).split("---\n");
  const { title, edit } = JSON.parse(head);
  assert.equal(title, "A fleet: one queue for many machines");
  assert.equal(edit, `${repository}/edit/main/docs/guide/fleet.md`);
});
