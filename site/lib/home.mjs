import { nodesOf } from "../../scripts/lib/markdown.mjs";
import { playground } from "./navigation.mjs";

/** The first page: the README's title and first sentence as its head, and below it the README from its first picture on. */
export function home(markdown, { title, summary, hasPlayground }) {
  const picture = nodesOf(markdown, "image")[0].node.position.start.offset;
  const actions = [
    { theme: "brand", text: "Get started", link: "/guide/getting-started" },
    ...(hasPlayground ? [{ theme: "alt", text: playground.title, link: playground.link, target: "_self" }] : []),
    { theme: "alt", text: "Reference", link: "/reference/" },
  ];
  return {
    frontmatter: { layout: "home", titleTemplate: false, hero: { text: title, tagline: summary, actions } },
    markdown: markdown.slice(picture),
  };
}
