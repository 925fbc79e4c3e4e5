import { apiPages } from "./api/pages.mjs";
import { home } from "./home.mjs";
import { navigationOf, summaryOf, titleOf } from "./navigation.mjs";
import { documentPages, repository } from "./pages.mjs";
import { rewritten } from "./rewrite.mjs";

/**
 * The whole site before VitePress renders it: `pages` of `{ route, title, summary, edit, frontmatter, markdown }`, the
 * `files` that they show or link, from the repository's root, and the `navigation`. Needs a build of the packages.
 */
export async function siteOf(base = "/") {
  const documents = documentPages();
  const files = new Set();
  const api = await apiPages();
  const written = documents.map((document) => {
    const page = rewritten(document, base);
    for (const file of page.files) files.add(file);
    const { route, source } = document;
    const title = titleOf(document.markdown);
    const summary = summaryOf(document.markdown);
    const edit = `${repository}/edit/main/${source}`;
    const { frontmatter, markdown } = route === "index.md" ? home(page.markdown, base) : page;
    return { route, title, summary, edit, frontmatter, markdown };
  });
  return {
    pages: [...written, ...api.pages],
    files: [...files].sort(),
    navigation: navigationOf(documents, api.group),
  };
}

/** A page as VitePress reads it. JSON is YAML. */
export const fileOf = ({ title, summary, edit, frontmatter, markdown }) =>
  `---\n${JSON.stringify({ title, description: summary, edit, ...frontmatter })}\n---\n\n${markdown}`;
