import GithubSlugger from "github-slugger";
import { format } from "prettier";

/** The widest line of a block of code that a page shows without scrolling. */
const width = 84;

const groups = [
  ["Functions", "function"],
  ["Classes", "class"],
  ["Values", "value"],
  ["Types", "type"],
];

/** The exports of an entry point in the order of its page, with the anchor of each, and of each member by its path. */
export function outlineOf({ specifier, exports }) {
  const slugger = new GithubSlugger();
  slugger.slug(specifier);
  const anchors = new Map();
  const sections = groups
    .map(([title, kind]) => ({ title, exports: exports.filter((one) => one.kind === kind) }))
    .filter((section) => section.exports.length > 0);
  for (const section of sections) {
    slugger.slug(section.title);
    for (const { name, kind, members } of section.exports) {
      anchors.set(name, slugger.slug(kind === "function" ? `${name}()` : name));
      for (const { path } of members) anchors.set(path, slugger.slug(path));
    }
  }
  return { sections, anchors };
}

/**
 * The page of an entry point, in Markdown. `linkTo(symbol)` gives the address of a type that a page has, `linkToName(name)`
 * that of a name in a docstring; both undefined where there is none.
 */
export async function pageOf(specifier, summary, { sections }, { linkTo, linkToName }) {
  const values = sections.flatMap(({ exports }) =>
    exports.filter(({ kind }) => kind !== "type").map(({ name }) => name),
  );
  const lines = [`# ${specifier}`, sentence(summary)];
  if (values.length > 0) lines.push(fence(importOf(values, specifier)));
  for (const { title, exports } of sections) {
    lines.push(`## ${title}`);
    for (const one of exports) lines.push(...(await exportOf(one, { linkTo, linkToName })));
  }
  return `${lines.filter((line) => line !== "").join("\n\n")}\n`;
}

/** An import, its names side by side. */
function importOf(names, specifier) {
  const line = `import { ${names.join(", ")} } from "${specifier}";`;
  if (line.length <= width) return line;
  return `import {\n  ${names.join(", ").replaceAll(/(.{60,78},) /g, "$1\n  ")},\n} from "${specifier}";`;
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.]$/.test(text) ? "" : "."}`;

async function exportOf({ name, kind, signatures, members, types }, { linkTo, linkToName }) {
  const lines = [`### ${kind === "function" ? `${name}()` : name}`];
  const toName = (written) => linkToName(`${name}.${written}`) ?? linkToName(written);
  for (const [index, { code: text, doc }] of signatures.entries()) {
    const before = signatures[index - 1]?.doc;
    if (doc.text !== before?.text) lines.push(prose(doc.text));
    lines.push(await code(text));
    lines.push(...tagsOf({ ...doc, examples: index === signatures.length - 1 ? doc.examples : [] }, toName));
  }
  const named = types.map((type) => [type.name, linkTo(type)]).filter(([, link]) => link !== undefined);
  if (named.length > 0) lines.push(`<sub>Types: ${named.map(([text, link]) => `[${text}](${link})`).join(", ")}</sub>`);
  for (const member of members) lines.push(...(await memberOf(member, toName)));
  return lines;
}

async function memberOf({ path, code: text, isCalled, doc }, toName) {
  const lines = [`#### ${path}`];
  const isShort = !isCalled && !text.includes("\n") && text.length < 80;
  const initial = doc.default === undefined ? [] : [`default: ${literal(doc.default)}`];
  if (isShort) lines.push([`\`${text}\``, ...initial].join(" · "));
  else lines.push(await code(text, isCalled ? memberFrame : typeFrame), ...initial.map(sentence));
  return [...lines, prose(doc.text), ...tagsOf(doc, toName)];
}

function tagsOf({ params, returns, throws, see, examples }, toName) {
  const list = (texts) => (texts.length < 2 ? (texts[0] ?? "") : `\n\n${texts.map((text) => `- ${text}`).join("\n")}`);
  const seen = see.map((text) => {
    const link = toName(text);
    return link === undefined ? `\`${text}\`` : `[${text}](${link})`;
  });
  return [
    params.length === 0 ? "" : `**Parameters:** ${list(params.map(prose))}`,
    returns === undefined ? "" : `**Returns** ${prose(returns)}`,
    throws.length === 0 ? "" : `**Throws** ${list(throws.map((text) => prose(text.replace(/^\{([^}]*)\}/, "`$1`"))))}`,
    seen.length === 0 ? "" : `**See** ${seen.join(", ")}`,
    ...examples.map((text) => fence(text)),
  ];
}

/** A docstring's text as Markdown: outside of code an angle bracket is one. */
const prose = (text) => text.replaceAll(/`[^`]*`|</g, (found) => (found === "<" ? "&lt;" : found));

/** A default as it is written; one that is a value looks like it. */
const literal = (text) => (/^(?:["\d[{-]\S*|true|false|Infinity)$/.test(text) ? `\`${text}\`` : prose(text));

const fence = (text) => `\`\`\`ts\n${text.trimEnd()}\n\`\`\``;

const declarationFrame = { wrap: (text) => `declare ${text}`, unwrap: (text) => text.replace(/^declare /, "") };
const typeFrame = {
  wrap: (text) => `type T = ${text}`,
  unwrap: (text) => text.replace(/^type T =\s*/, "").replace(/;\n$/, "\n"),
};
const memberFrame = {
  wrap: (text) => `interface I { ${text} }`,
  unwrap: (text) =>
    text
      .split("\n")
      .slice(1, -2)
      .map((line) => line.slice(2))
      .join("\n"),
};

/** Code as a block, formatted to the width of a page. */
async function code(text, frame = declarationFrame) {
  return fence(frame.unwrap(await format(frame.wrap(text), { parser: "typescript", printWidth: width })));
}
