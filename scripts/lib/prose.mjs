// Phrases that read as if translated, in documents, comments, messages and test names: `npm run check` refuses them.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "./files.mjs";

/** Each phrase with what to write instead. "There is no such …" is English. */
const rules = [
  [/\bcan not\b/gi, "cannot"],
  [
    /(?<!\bthere )\b(?:is|are|was|were) no (?!(?:longer|more|less|fewer|better|worse|faster|slower|larger|smaller|reason)\b)\w+/gi,
    "is not a …, or no … is",
  ],
  [/\b(?:mend|mends|mended|mending)\b/gi, "fix"],
  [/\banew\b/gi, "again, or new"],
  [/\bfor ever\b/gi, "forever"],
  [/\b(?:hear|hears|heard|hearing) of\b/gi, "is notified of, or gets"],
  [/\btold (?:by|of)\b/gi, "name who reports what"],
  [/\bno word of\b/gi, "no sign of, or not confirmed"],
  [/\bwithout a word\b/gi, "silently"],
  [/\bwhoever\b/gi, "name the role: caller, worker, reader"],
  [/\bnobody's\b/gi, "no caller's, or no other's"],
  [/\b(?:nobody|nothing|none|no \w+)\b[^.:;,]{0,50} any more\b/gi, "no longer, or has left"],
  [/\bhas need of\b/gi, "needs"],
  [/\bis to be had\b/gi, "is available"],
  [/\blets? go of\b/gi, "releases"],
];

/** The phrases of a text that have a rule, each with its line and what to write instead. */
export function oddPhrases(text) {
  // A phrase may go over the end of a line, and of a comment's line.
  const joined = text.replaceAll(/[ \t]*\n[ \t]*(?:\/\/|\*(?!\/)|#+|>)?[ \t]*/g, "\n");
  const flat = joined.replaceAll("\n", " ");
  return rules.flatMap(([pattern, instead]) =>
    [...flat.matchAll(pattern)].map(({ 0: phrase, index }) => ({
      line: joined.slice(0, index).split("\n").length,
      phrase,
      instead,
    })),
  );
}

/** Every odd phrase in the repository, as `path:line: phrase (instead)`. */
function proseComplaints() {
  const listing = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  });
  const isText = (path) => /\.(?:md|ts|js|mjs|py|go|html|ya?ml)$/.test(path);
  const isExempt = (path) => /\/fixtures\/|^(?:scripts\/lib|test)\/prose\./.test(path);
  return listing
    .split("\n")
    .filter((path) => isText(path) && !isExempt(path) && existsSync(join(root, path)))
    .flatMap((path) =>
      oddPhrases(readFileSync(join(root, path), "utf8")).map(
        ({ line, phrase, instead }) => `${path}:${line}: "${phrase}" (${instead})`,
      ),
    );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const complaints = proseComplaints();
  if (complaints.length > 0) console.log(complaints.join("\n"));
  process.exitCode = complaints.length === 0 ? 0 : 1;
}
