/**
 * Counts headless clauses: a "what", "who" or "whatever" that stands where a noun should ("what waits goes first"
 * instead of "waiting items go first"). Questions and reported questions ("says what it got") are English and do not count.
 * `npm run check` compares the counts with the ceilings in test/fixtures/headless.json.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Visitor } from "oxc-parser";
import { root } from "./files.mjs";
import { parsed } from "./imports.mjs";
import { proseOf } from "./markdown.mjs";

/** Verbs that take a reported question: "says what it got", "nobody knows what it costs". */
const reporting = new RegExp(
  "\\b(?:" +
    "ask|asked|asks|choose|chooses|decide|decided|decides|describe|describes|determine|determines|explain|explains|find out|" +
    "guess|know|known|knows|learn|learned|learns|list|lists|print|prints|said|say|saying|says|see|sees|seen|show|showing|" +
    "shown|shows|specify|specifies|tell|telling|tells|told|understand|understands|knowing" +
    ")(?: (?:\\w+ ){0,2}\\w+)??,? $",
  "i",
);

const clause = /\b(?:what(?! (?:to|if|kind|sort)\b)|whatever)\b|(?:^|; |\band |\bor )who\b/gi;

/** The headless clauses of some prose, each as the words that begin it and its offset. */
export function headlessClauses(prose) {
  const found = [];
  for (const { 0: sentence, index } of prose.matchAll(/[^.?!:|]+(?:[.?!:](?!\s|$)[^.?!:|]*)*[.?!:]?/g)) {
    if (sentence.endsWith("?")) continue;
    let isReported = false;
    for (const match of sentence.matchAll(clause)) {
      const before = sentence.slice(0, match.index);
      const word = match[0].toLowerCase();
      // "Whatever the policy says, the limit holds" is an adverb, not a noun.
      if (word === "whatever" && /(?:^\W*|[,–—(] )$/.test(before)) continue;
      // "… says what is wrong, what is allowed and what it got" goes on as it began.
      isReported = word === "what" && (reporting.test(before) || (isReported && /(?:, | and | or )$/.test(before)));
      if (isReported) continue;
      found.push({ phrase: sentence.slice(match.index).split(/\s+/, 4).join(" "), offset: index + match.index });
    }
  }
  return found;
}

const wordsOf = (text) => text.match(/\p{L}[\p{L}’'-]*/gu)?.length ?? 0;

/** Comments of a module, lines of one block joined: `{ text, at }`. */
function commentsOf(source, path) {
  const blocks = [];
  for (const { type, value, start, end } of parsed(source, path).comments) {
    const text = value.replaceAll(/\n\s*\*?/g, "\n").replaceAll(/`[^`]*`/g, (code) => code.replaceAll(/[^\n]/g, "x"));
    const last = blocks.at(-1);
    const continues = type === "Line" && last?.type === "Line" && source.slice(last.end, start).trim() === "";
    if (continues) Object.assign(last, { text: `${last.text}\n${text}`, end });
    else blocks.push({ type, text, start, end });
  }
  return blocks.map(({ text, start }) => ({ text, at: start }));
}

/** Strings and templates that read as a sentence: `{ text, at }`. */
function textsOf(source, path) {
  const texts = [];
  const add = (text, at) => void (wordsOf(text) >= 3 && texts.push({ text, at }));
  new Visitor({
    Literal: ({ value, start }) => typeof value === "string" && add(value, start),
    TemplateLiteral: ({ quasis, start }) => add(quasis.map(({ value }) => value.cooked).join("x"), start),
  }).visit(parsed(source, path).program);
  return texts;
}

const listed = (...patterns) =>
  execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "--", ...patterns], {
    cwd: root,
    encoding: "utf8",
  })
    .split("\n")
    .filter((path) => path !== "" && existsSync(join(root, path)));

const modules = ["packages/*/src/*.ts", "packages/*/src/*.js"];

/** The kinds of prose, each with its files and the pieces of prose in one of them. */
const kinds = {
  comments: { files: () => listed(...modules), piecesOf: commentsOf },
  texts: { files: () => listed(...modules), piecesOf: textsOf },
  docs: {
    files: () => listed("*.md").filter((path) => !path.startsWith("docs/reports/")),
    piecesOf: (source) => proseOf(source),
  },
};

/** Every headless clause: by kind, `{ words, clauses: [{ path, line, phrase }] }`. */
export function headlessEverywhere() {
  return Object.fromEntries(
    Object.entries(kinds).map(([kind, { files, piecesOf }]) => {
      let words = 0;
      const clauses = files().flatMap((path) => {
        const source = readFileSync(join(root, path), "utf8");
        return piecesOf(source, path).flatMap(({ text, at }) => {
          words += wordsOf(text);
          return headlessClauses(text.replaceAll(/\s/g, " ")).map(({ phrase, offset }) => ({
            path,
            line: source.slice(0, at).split("\n").length + text.slice(0, offset).split("\n").length - 1,
            phrase,
          }));
        });
      });
      return [kind, { words, clauses }];
    }),
  );
}

/** The counts as test/fixtures/headless.json has them. */
export const headlessCounts = () =>
  Object.fromEntries(Object.entries(headlessEverywhere()).map(([kind, { clauses }]) => [kind, clauses.length]));

// With no word: the counts against their ceilings. With words: every clause in the files whose path holds one of them.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const wanted = process.argv.slice(2);
  const ceilings = JSON.parse(readFileSync(`${root}/test/fixtures/headless.json`, "utf8"));
  for (const [kind, { words, clauses }] of Object.entries(headlessEverywhere())) {
    for (const { path, line, phrase } of clauses)
      if (wanted.some((word) => path.includes(word))) console.log(`${path}:${line}: ${phrase} … (${kind})`);
    const rate = ((1000 * clauses.length) / words).toFixed(2);
    console.log(`${kind}: ${clauses.length} headless clauses, ${rate} in 1,000 words; ceiling ${ceilings[kind]}`);
    if (clauses.length <= ceilings[kind]) continue;
    console.log("Name the thing: node scripts/lib/headless.mjs WORD lists the clauses of files whose path holds WORD.");
    process.exitCode = 1;
  }
}
