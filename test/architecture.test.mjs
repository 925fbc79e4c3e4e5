// ARCHITECTURE.md against the sources: its tree, its walk, and its words.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { test } from "node:test";
import { filesBelow, root } from "../scripts/lib/files.mjs";
import { codeBlocks, tableRows } from "../scripts/lib/markdown.mjs";
import { publicExports } from "../scripts/lib/public-exports.mjs";

const text = readFileSync(`${root}/ARCHITECTURE.md`, "utf8");
const terms = tableRows(text, "word").flatMap(([cell]) => cell.split(", "));
const exported = publicExports();

/** `NatsFrontEndOptions` as "nats front end options". */
const inWords = (name) => name.replaceAll(/(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, " ").toLowerCase();

test("the tree names every room of both packages", () => {
  const [tree] = codeBlocks(text).map((block) => block.text);
  const rooms = ["sheaf", "sheaf-server"].flatMap((name) =>
    filesBelow(`packages/${name}/src`, "README.md").map((file) => file.split("/src/")[1].split("/").slice(0, -1)),
  );
  assert.ok(rooms.length > 40, `only ${rooms.length} rooms were found`);
  // Adapters are named by their clients.
  const named = rooms.filter(([first, second]) => first !== "adapters" || second === undefined || second === "nats");
  assert.deepEqual(
    named.map((parts) => parts.at(-1)).filter((name) => !tree.includes(`${name}/`)),
    [],
  );
});

test("a link to a source file is named like the file", () => {
  const links = [...text.matchAll(/\[([^\]]+)\]\(([^)]+\.(?:ts|mjs))\)/g)];
  assert.ok(links.length > 30);
  const isProse = (name) => !name.includes(".");
  assert.deepEqual(
    links.filter(([, name, target]) => !isProse(name) && basename(name) !== basename(target)).map(([link]) => link),
    [],
  );
});

test("each stage of a model's life has a type of its own in the server", () => {
  const sources = filesBelow("packages/sheaf-server/src", ".ts").map((file) => readFileSync(file, "utf8"));
  const types = tableRows(text, "stage").map(([, type]) => type.replaceAll("`", ""));
  assert.ok(types.length > 5, `only ${types.length} stages were found`);
  const declarations = (type) =>
    sources.filter((source) => new RegExp(`^export (?:interface|type|class) ${type}\\b`, "m").test(source)).length;
  assert.deepEqual(
    types.filter((type) => declarations(type) !== 1),
    [],
  );
});

test("each word of the glossary stands there once", () => {
  assert.deepEqual(terms.filter((term, index) => terms.indexOf(term) !== index), []); // prettier-ignore
});

test("each word of the glossary is used in a public name or a page of the documents", () => {
  const names = Object.values(exported).flat().map(inWords);
  const pages = filesBelow("docs", ".md").map((file) => inWords(readFileSync(file, "utf8")));
  const used = [...names, ...pages].join("\n");
  assert.deepEqual(
    terms.filter((term) => !new RegExp(`\\b${term}`).test(used)),
    [],
  );
});

// What a reader knows without a glossary, and what a page of its own explains.
const plain = new Set(
  (
    "adaptive array auto binary capacity check code column command context constructor data declaration definition distribution " +
    "dtype encode encoder error estimate event finishing fixed function info keyed lifecycle limit line load log measured " +
    "message of options out plain preparing rate reason results role row rows staged state stats tensor time typed " +
    "view wrap"
  ).split(" "),
);

test("the glossary has every word of the batcher's public types (sheaf, sheaf/node)", () => {
  const types = ["sheaf", "sheaf/node"].flatMap((entry) => exported[entry]).filter((name) => /^type [A-Z]/.test(name));
  const words = [...new Set(types.flatMap((name) => inWords(name.slice("type ".length)).split(" ")))];
  const known = new Set([...terms, ...terms.flatMap((term) => term.split(" "))]);
  const missing = words.filter((word) => !plain.has(word) && !known.has(word) && !known.has(word.replace(/s$/, "")));
  assert.deepEqual(missing, [], "explain it in ARCHITECTURE.md under Words, or choose a word that stands there");
});
