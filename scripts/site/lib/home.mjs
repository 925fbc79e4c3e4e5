import { nodesOf } from "../../lib/markdown.mjs";
import { playground } from "./navigation.mjs";

/** The first page: the README, with the ways on below its first paragraph. It has a footer of its own, so no link to edit it. */
export function home(markdown, base = "/") {
  const { end } = nodesOf(markdown, "paragraph")[0].node.position;
  const ways = [
    "[Get started](/guide/getting-started.md)",
    // The site's router would look for a page of this name.
    `<a href="${base}${playground.link.slice(1)}" target="_self">${playground.title}</a>`,
    "[Reference](/reference/index.md)",
  ];
  const block = `<div class="ways">\n\n${ways.join("\n")}\n\n</div>`;
  return {
    frontmatter: {
      titleTemplate: ":title",
      pageClass: "home",
      sidebar: false,
      aside: false,
      editLink: false,
      prev: false,
      next: false,
    },
    markdown: `${markdown.slice(0, end.offset)}\n\n${block}${markdown.slice(end.offset)}`,
  };
}
