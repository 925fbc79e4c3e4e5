import { apiPages } from "./api/pages.mjs";
import { home } from "./home.mjs";
import { navigationOf, summaryOf, titleOf } from "./navigation.mjs";
import { documentPages, repository } from "./pages.mjs";
import { rewritten } from "./rewrite.mjs";

/**
 * The whole site before VitePress renders it; needs a build of the packages: `pages` of `{ route, title, summary, edit, frontmatter, markdown }`, the
 * `files` that they show or link, from the repository's root, and the `navigation`.
 */
export async function siteOf({ base = "/", hasPlayground = false } = {}) {
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
    const own = route === "index.md" ? home(page.markdown, { title, summary, hasPlayground }) : page;
    return { route, title, summary, edit, frontmatter: own.frontmatter ?? {}, markdown: own.markdown };
  });
  return {
    pages: [...written, ...api.pages],
    files: [...files].sort(),
    navigation: navigationOf(documents, api.group, { hasPlayground }),
  };
}

/** A page as VitePress reads it. JSON is YAML. */
export const fileOf = ({ title, summary, edit, frontmatter, markdown }) =>
  `---\n${JSON.stringify({ title, description: summary, edit, ...frontmatter })}\n---\n\n${markdown}`;
