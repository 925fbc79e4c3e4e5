import GithubSlugger from "github-slugger";
import { toString } from "mdast-util-to-string";
import remarkGfm from "remark-gfm";
import remarkParse from "remark-parse";
import { unified } from "unified";
import { visit } from "unist-util-visit";

const processor = unified().use(remarkParse).use(remarkGfm);
const trees = new Map();

/** The syntax tree (mdast) of a Markdown text. */
function treeOf(markdown) {
  if (!trees.has(markdown)) trees.set(markdown, processor.parse(markdown));
  return trees.get(markdown);
}

/** The nodes of some types in a Markdown text: `{ node, index, parent }`. */
export const nodesOf = (markdown, type) => {
  const nodes = [];
  visit(treeOf(markdown), type, (node, index, parent) => void nodes.push({ node, index, parent }));
  return nodes;
};

/**
 * The fenced code blocks of a Markdown text: `{ language, words, text, line, prelude, output }`. `words` follow the
 * language on the fence; `prelude` is the comment `<!-- ts: … -->` right before it, which gives a TypeScript block the
 * declarations that a reader can guess; `output` is the text of a block "text output" right after it.
 */
export function codeBlocks(markdown) {
  return nodesOf(markdown, "code").map(({ node, index, parent }) => {
    const words = wordsOf(node);
    const [, prelude = ""] = /^<!-- ts:([^]*?)-->$/.exec(parent.children[index - 1]?.value ?? "") ?? [];
    const next = parent.children[index + 1];
    return {
      language: node.lang ?? "",
      words,
      text: `${node.value}\n`,
      line: node.position.start.line + 1,
      prelude,
      output: next?.type === "code" && wordsOf(next).includes("output") ? `${next.value}\n` : undefined,
    };
  });
}

const wordsOf = ({ meta }) => meta?.split(/\s+/) ?? [];

/** The texts of inline code. */
export function inlineCode(markdown) {
  return nodesOf(markdown, "inlineCode").map(({ node }) => node.value);
}

/** Targets of links and images, as written, those of HTML too. */
export function links(markdown) {
  const targets = ["link", "image", "definition"].flatMap((type) =>
    nodesOf(markdown, type).map(({ node }) => ({ target: node.url, at: node.position.start.offset })),
  );
  const html = nodesOf(markdown, "html").flatMap(({ node }) =>
    [...node.value.matchAll(/<(?:a|img|source)\s[^>]*?(?:href|src|srcset)="([^"]+)"/g)].map(([, target]) => ({
      target,
      at: node.position.start.offset,
    })),
  );
  return [...targets, ...html].sort((a, b) => a.at - b.at).map(({ target }) => target);
}

/** The anchors that the headings of a Markdown text make, as GitHub names them. */
export function anchors(markdown) {
  const slugger = new GithubSlugger();
  return nodesOf(markdown, "heading").map(({ node }) => slugger.slug(toString(node)));
}

/** The sections under headings of the second level: `{ title, text }`: the title as written, the text without its heading. */
export function sections(markdown) {
  const headings = nodesOf(markdown, "heading").filter(({ node }) => node.depth === 2);
  return headings.map(({ node }, index) => ({
    title: sourceOf(markdown, node.children),
    text: markdown.slice(node.position.end.offset, headings[index + 1]?.node.position.start.offset),
  }));
}

/** The lines of table rows that have more or fewer cells than the header of their table. */
export function raggedRows(markdown) {
  return nodesOf(markdown, "table").flatMap(({ node }) => {
    const [header, ...rows] = node.children;
    return rows
      .filter(({ children }) => children.length !== header.children.length)
      .map(({ position }) => position.start.line);
  });
}

/** Rows of every table whose first column is headed so: each an array of cells as written, without the header. */
export function tableRows(markdown, firstHeading) {
  return nodesOf(markdown, "table")
    .map(({ node }) => node.children.map(({ children }) => children.map((cell) => sourceOf(markdown, cell.children))))
    .filter(([header]) => header[0] === firstHeading)
    .flatMap(([, ...rows]) => rows);
}

/** The Markdown of some nodes; a pipe that a table escapes is a pipe. */
function sourceOf(markdown, nodes) {
  if (nodes.length === 0) return "";
  return markdown
    .slice(nodes[0].position.start.offset, nodes.at(-1).position.end.offset)
    .replaceAll(String.raw`\|`, "|");
}
