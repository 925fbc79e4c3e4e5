import { nodesOf } from "../../lib/markdown.mjs";
import { targetOf } from "./pages.mjs";

/**
 * A document as a page of the site: `{ markdown, files }`. Links lead to pages, to files beside them (listed in `files`,
 * from the repository's root) or to the code host; comments are gone; blocks "text output" are of the language "output".
 */
export function rewritten({ source, markdown }, base = "/") {
  const edits = [];
  const files = new Set();
  const replace = (start, end, text) => void edits.push({ start, end, text });
  const lookUp = (target) => {
    const found = targetOf(source, target);
    if (found.kind === "file") files.add(found.file);
    return found;
  };

  for (const { node } of nodesOf(markdown, "link")) {
    const { start, end } = node.position;
    // A bare address has no brackets, and leads elsewhere.
    if (markdown[start.offset] !== "[") continue;
    const { url, kind } = lookUp(node.url);
    const textEnd = node.children.at(-1).position.end.offset;
    // The site's router would look for a page of this name.
    const isReport = kind === "file" && url.endsWith(".html");
    if (isReport) replace(start.offset, start.offset + 1, `<a href="${base}${url.slice(1)}" target="_self">`);
    replace(textEnd, end.offset, isReport ? "</a>" : `](${url})`);
  }
  for (const { node } of nodesOf(markdown, "image"))
    replace(node.position.start.offset, node.position.end.offset, `![${node.alt}](${lookUp(node.url).url})`);
  for (const { node } of nodesOf(markdown, "definition"))
    replace(node.position.start.offset, node.position.end.offset, `[${node.label}]: ${lookUp(node.url).url}`);
  for (const { node } of nodesOf(markdown, "html"))
    replace(node.position.start.offset, node.position.end.offset, htmlOf(node.value, lookUp));
  for (const { node } of nodesOf(markdown, "code"))
    if (node.lang === "text" && node.meta === "output") {
      const start = node.position.start.offset;
      replace(start, start + "```text output".length, "```output");
    }
  return { markdown: edited(markdown, edits), files: [...files] };
}

const htmlOf = (html, lookUp) =>
  html
    .replaceAll(/<!--[^]*?-->/g, "")
    .replaceAll(
      /(<(?:a|img|source)\s[^>]*?(?:href|src|srcset)=")([^"]+)"/g,
      (_, head, target) => `${head}${lookUp(target).url}"`,
    );

/** A text with some of its parts replaced: `{ start, end, text }`, in any order, none inside another. */
function edited(text, edits) {
  let at = 0;
  let result = "";
  for (const { start, end, text: replacement } of edits.sort((a, b) => a.start - b.start)) {
    if (start < at) throw new Error(`two edits overlap at ${text.slice(start, end)}`);
    result += text.slice(at, start) + replacement;
    at = end;
  }
  return result + text.slice(at);
}
