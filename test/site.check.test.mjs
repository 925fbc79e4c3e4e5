// The pages of the site before they are rendered. The built site is tested in scripts/site/test, by .ci/run.
import assert from "node:assert/strict";
import { test } from "node:test";
import { documents } from "../scripts/lib/docs.mjs";
import { root } from "../scripts/lib/files.mjs";
import { anchors, links, sections } from "../scripts/lib/markdown.mjs";
import { publicExports } from "../scripts/lib/public-exports.mjs";
import { llmsFull, llmsIndex } from "../scripts/site/lib/llms.mjs";
import { playground, summaryOf } from "../scripts/site/lib/navigation.mjs";
import { repository, routeOf, targetOf } from "../scripts/site/lib/pages.mjs";
import { rewritten } from "../scripts/site/lib/rewrite.mjs";
import { fileOf, siteOf } from "../scripts/site/lib/site.mjs";

const site = await siteOf();
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

test("every page has a title, a sentence that says what it is about, and the place to edit it", () => {
  for (const { route, title, summary, edit } of site.pages) {
    assert.ok(title.length > 1, route);
    assert.match(summary, /^\S.*[.?!]$/, route);
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
  if (path === playground.link) return false; // made by npm run playground
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
  const folders = nav.map(({ link }) => link).filter((link) => link !== playground.link);
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
    ["../reports/slo/goodput.svg", "/reports/slo/goodput.svg"],
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
    "![a chart](../reports/slo/goodput.svg)",
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
    .replace("../reports/slo", "/reports/slo")
    .replace('"fleet.md"', '"/guide/fleet.md"')
    .replace(/<!--.*-->/, "")
    .replace("```text output", "```output")
    .replace("../reference/errors.md", "/reference/errors.md");
  assert.equal(page.markdown, expected);
  assert.deepEqual(page.files, ["docs/reports/mlp.html", "docs/reports/slo/goodput.svg"]);
});

test("a page's summary is its first sentence, or two short ones, from a paragraph and not from a list", () => {
  const first = "One `a.b` in\nv1.2 of it and of everything else.";
  assert.equal(summaryOf(`# Title\n\n- no\n\n${first} Two.`), "One a.b in v1.2 of it and of everything else.");
  assert.equal(
    summaryOf("# Title\n\nBy task. The other lists every name. Three."),
    "By task. The other lists every name.",
  );
  assert.equal(summaryOf("# Title\n\nAs follows:\n\n- yes"), "As follows.");
});

test("the first page is the README, with the ways on below its first paragraph", () => {
  const { markdown } = pageAt.get("/index.md");
  assert.match(markdown, /^# Sheaf\n\nDynamic batching for TypeScript[^]*?\.\n\n<div class="ways">/);
  for (const target of ["/guide/getting-started.md", playground.link, "/reference/index.md"])
    assert.ok(links(markdown).includes(target), target);
});

test("a page's file gives VitePress its title, sentence and place to edit", () => {
  const [, head] = fileOf(pageAt.get("/guide/fleet.md")).split("---\n");
  const { title, description, edit } = JSON.parse(head);
  assert.equal(title, "A fleet: one queue for many machines");
  assert.match(description, /^A fleet runs models on many machines/);
  assert.equal(edit, `${repository}/edit/main/docs/guide/fleet.md`);
});

test("every name that an entry point exports has a section on its page, and back", () => {
  for (const [specifier, names] of Object.entries(publicExports())) {
    const { markdown } = pageAt.get(`/api/${specifier.replace(/^sheaf\//, "")}.md`);
    const titles = [...markdown.matchAll(/^### (\w+)/gm)].map(([, name]) => name);
    assert.deepEqual(titles.sort(), names.map((name) => name.replace(/^type /, "")).sort(), specifier);
  }
});

/** The part of a page below a heading, as written, up to the next heading. */
const below = (route, heading) => {
  const { markdown } = pageAt.get(route);
  const start = markdown.indexOf(`\n${heading}\n`);
  assert.ok(start >= 0, heading);
  return markdown.slice(start + heading.length + 2).split(/^#+ /m)[0];
};

test("an API page shows signatures, defaults, errors and references as the docstrings have them", () => {
  const createBatcher = below("/api/sheaf.md", "### createBatcher()");
  assert.equal(createBatcher.match(/^function createBatcher</gm).length, 1);
  assert.match(createBatcher, /\*\*Throws\*\* `TypeError \| RangeError` for a wrong option/);
  assert.match(createBatcher, /<sub>Types: .*\[BatcherOptions\]\(\/api\/sheaf\.md#batcheroptions\)/);
  assert.match(createBatcher, /^const vector = await embed\("hello"\);$/m);

  const weight = below("/api/sheaf.md", "#### BatcherOptions.maxBatchWeight");
  assert.match(weight, /^`number` · default: /m);
  assert.match(weight, /\*\*See\*\* .*\[maxItemWeight\]\(\/api\/sheaf\.md#batcheroptionsmaxitemweight\)/);
  assert.match(below("/api/sheaf.md", "#### BatcherOptions.maxBatchSize"), /^`number` · default: `32`$/m);
  assert.match(below("/api/sheaf.md", "#### Batcher.close.graceMs"), /default: none: as long as they take/);

  // Under the name that users import.
  assert.match(below("/api/sheaf-server.md", "### workerModel()"), /^function workerModel\(spec: ModelSpec/m);
  // From another entry point.
  assert.match(below("/api/adapters/bullmq.md", "### BatchProcessor"), /\[Batcher\]\(\/api\/sheaf\.md#batcher\)/);
});

test("llms.txt lists every page once, below its title and sentence, and llms-full.txt has their text", () => {
  const index = llmsIndex(site.pages, "/sheaf/");
  assert.match(
    index,
    /^# Sheaf\n\n> Dynamic batching for TypeScript.*\n\n## Guide\n\n- \[Guide\]\(\/sheaf\/guide\/index\.md\): \S/,
  );
  const listed = links(index).map((target) => target.slice("/sheaf".length));
  assert.deepEqual(listed.sort(), [...pageAt.keys()].filter((route) => route !== "/index.md").sort());
  assert.ok(sections(index).length > 4);
  const full = llmsFull(site.pages);
  assert.ok(
    full.includes("# A fleet: one queue for many machines") && full.includes("#### BatcherOptions.maxBatchWeight"),
  );
});
