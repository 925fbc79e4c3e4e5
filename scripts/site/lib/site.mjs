import { navigationOf, titleOf } from "./navigation.mjs";
import { documentPages, repository } from "./pages.mjs";
import { rewritten } from "./rewrite.mjs";

/** VitePress's settings of the first page, the README. */
const home = { titleTemplate: ":title", sidebar: false, aside: false, editLink: false, prev: false, next: false };

/**
 * The whole site before VitePress renders it: `pages` of `{ route, title, edit, frontmatter, markdown }`, the `files` that
 * they show or link, from the repository's root, and the `navigation`.
 */
export function siteOf(base = "/") {
  const documents = documentPages();
  const files = new Set();
  const pages = documents.map((document) => {
    const page = rewritten(document, base);
    for (const file of page.files) files.add(file);
    const { route, source } = document;
    const edit = `${repository}/edit/main/${source}`;
    const frontmatter = route === "index.md" ? home : {};
    return { route, title: titleOf(document.markdown), edit, frontmatter, markdown: page.markdown };
  });
  return { pages, files: [...files].sort(), navigation: navigationOf(documents) };
}

/** A page as VitePress reads it. JSON is YAML. */
export const fileOf = ({ title, edit, frontmatter, markdown }) =>
  `---\n${JSON.stringify({ title, edit, ...frontmatter })}\n---\n\n${markdown}`;
