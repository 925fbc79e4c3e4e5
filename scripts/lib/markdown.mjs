/**
 * The fenced code blocks of a Markdown text: `{ language, words, text, line, prelude, output }`. `words` follow the
 * language on the fence; `prelude` is the comment `<!-- ts: … -->` right before it, which gives a TypeScript block the
 * declarations that a reader can guess; `output` is the text of a block "text output" right after it.
 */
export function codeBlocks(markdown) {
  const fence = /(?:<!-- ts:([^]*?)-->\s*\n)?^( *)```([^\n`]*)\n([^]*?)^\2``` *$/gm;
  const blocks = [...markdown.matchAll(fence)].map((match) => {
    const [, prelude = "", indent, info, text] = match;
    const [language = "", ...words] = info.trim().split(/\s+/);
    const before = markdown.slice(0, match.index + match[0].indexOf("```"));
    const end = match.index + match[0].length;
    const line = before.split("\n").length + 1;
    return {
      language,
      words,
      text: text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
      line,
      prelude,
      end,
      start: match.index,
    };
  });
  return blocks.map(({ end, start: _, ...block }, index) => {
    const next = blocks[index + 1];
    const follows = next?.words.includes("output") && markdown.slice(end, next.start).trim() === "";
    return { ...block, output: follows ? next.text : undefined };
  });
}

/** Targets of links and images outside code, as written. */
export function links(markdown) {
  const text = withoutCode(markdown);
  const inline = [...text.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g)].map(([, target]) => target);
  const references = [...text.matchAll(/^\[[^\]]+\]:\s*(\S+)/gm)].map(([, target]) => target);
  const html = [...text.matchAll(/<(?:a|img|source)\s[^>]*?(?:href|src|srcset)="([^"]+)"/g)].map(
    ([, target]) => target,
  );
  return [...inline, ...references, ...html];
}

/** The anchors that the headings of a Markdown text make, as GitHub names them. */
export function anchors(markdown) {
  const seen = new Map();
  const headings = [...markdown.replaceAll(/^( *)```[^]*?^\1``` *$/gm, "").matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)];
  return headings.map(([, title]) => {
    const slug = title
      .replaceAll(/[`*_]|\]\([^)]*\)|\[/g, "")
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-");
    const times = seen.get(slug) ?? 0;
    seen.set(slug, times + 1);
    return times === 0 ? slug : `${slug}-${times}`;
  });
}

/** The sections under headings of the second level: `{ title, text }`, the text without its heading. */
export function sections(markdown) {
  const parts = markdown.split(/^## +(.+?) *$/m).slice(1);
  return parts.flatMap((title, i) => (i % 2 === 0 ? [{ title, text: parts[i + 1] }] : []));
}

/** Rows of every table whose first column is headed so: each an array of trimmed cells, without the header. */
export function tableRows(markdown, firstHeading) {
  const tables = markdown.matchAll(/^\|(.+)\|[ \t]*\n\|[\s:|-]+\|[ \t]*\n((?:\|.*\|[ \t]*(?:\n|$))*)/gm);
  return [...tables]
    .filter(([, header]) => cells(header)[0] === firstHeading)
    .flatMap(([, , body]) =>
      body
        .trim()
        .split("\n")
        .filter(Boolean)
        .map((row) => cells(row.trim().slice(1, -1))),
    );
}

const cells = (row) => row.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));

const withoutCode = (markdown) => markdown.replaceAll(/^( *)```[^]*?^\1``` *$/gm, "").replaceAll(/`[^`\n]*`/g, "");
