import { toString } from "mdast-util-to-string";
import { nodesOf } from "../../lib/markdown.mjs";
import { targetOf } from "./pages.mjs";

/** The title of a document: its first heading, in words. */
export const titleOf = (markdown) => toString(nodesOf(markdown, "heading")[0].node);

/**
 * The links of a document's tables as groups of a sidebar, one for each heading above a table:
 * `{ text, items: [{ text, link }] }`. Links to other than pages do not count.
 */
export function groupsOf({ source, markdown }) {
  const headings = nodesOf(markdown, "heading");
  const groups = new Map();
  const cells = nodesOf(markdown, "tableCell").flatMap(({ node }) => node.children);
  for (const link of cells.filter(({ type }) => type === "link")) {
    const { url, kind } = targetOf(source, link.url);
    if (kind !== "page") continue;
    const heading = headings.findLast(({ node }) => node.position.start.offset < link.position.start.offset);
    const text = toString(heading.node);
    groups.set(text, [...(groups.get(text) ?? []), { text: toString(link), link: url }]);
  }
  return [...groups].map(([text, items]) => ({ text, items }));
}

/** The bar at the top and the sidebars, from the pages. */
export function navigationOf(pages) {
  const bySource = (source) => pages.find((page) => page.source === source);
  const under = (folder) =>
    pages
      .filter(({ route }) => route.startsWith(`${folder}/`))
      .map(({ route, markdown }) => ({ text: shortTitle(markdown), link: `/${route}` }));
  const overview = (link) => ({ text: "Overview", link });
  const guide = [{ items: [overview("/guide/index.md")] }, ...groupsOf(bySource("docs/guide/README.md"))];
  const [reference] = groupsOf(bySource("docs/reference/README.md"));
  const names = { text: "Reference", items: [overview("/reference/index.md"), ...reference.items] };
  const rest = ["examples", "reports", "project"].map((folder) => ({ text: capital(folder), items: under(folder) }));
  return {
    nav: [
      { text: "Guide", link: "/guide/", activeMatch: "^/guide/" },
      { text: "Reference", link: "/reference/", activeMatch: "^/reference/" },
      { text: "Examples", link: "/examples/", activeMatch: "^/examples/" },
      { text: "Reports", link: "/reports/", activeMatch: "^/reports/" },
    ],
    sidebar: {
      "/guide/": guide,
      "/reference/": [names],
      "/examples/": rest,
      "/reports/": rest,
      "/project/": rest,
    },
  };
}

const capital = (word) => word[0].toUpperCase() + word.slice(1);

/** A title up to its colon: "A fleet: one queue for many machines" is "A fleet" in a list. */
const shortTitle = (markdown) => titleOf(markdown).split(": ")[0];
