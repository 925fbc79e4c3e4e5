import { existsSync, readFileSync, statSync } from "node:fs";
import { root } from "./files.mjs";
import { pathOf } from "./named.mjs";
import { importsOf } from "./imports.mjs";
import { codeBlocks, inlineCode } from "./markdown.mjs";

/** The command lines of a document that start one of our commands: in its shell blocks, and in code between its words. */
export function commandLines(markdown) {
  const blocks = codeBlocks(markdown).filter(({ language }) => language === "sh" || language === "bash");
  return [...blocks.map(({ text }) => text.replaceAll(/\\\n\s*/g, " ")), ...inlineCode(markdown)]
    .flatMap((text) => text.split(/\n|&&|;|\|(?!\w)/))
    .map((line) =>
      line
        .replace(/\s#\s.*$/, "")
        .trim()
        .replace(/^(?:[A-Z_]+=\S+ +|npx +)+/, "")
        .replaceAll(/\s+/g, " "),
    ) // prettier-ignore
    .filter((line) => /^(?:sheaf|npm run) /.test(line));
}

/**
 * What is wrong with a document's command lines: a script, a bench or a proof that does not exist, a command or a flag
 * that `sheaf` does not have. `commands` maps each command's name to its flags and settings, as flagsOf gives them.
 */
export function staleCommandLines(markdown, commands) {
  const stale = commandLines(markdown).flatMap((line) => {
    const complaint = line.startsWith("sheaf ") ? aboutSheaf(line, commands) : aboutScript(line);
    return complaint === undefined ? [] : [`${complaint}: ${line}`];
  });
  return [...new Set(stale)];
}

function aboutSheaf(line, commands) {
  const [, name] = line.split(" ");
  // `sheaf COMMAND --help` and `sheaf --version` name no command.
  if (!/^[a-z]/.test(name) || name === "help") return undefined;
  const command = commands.get(name);
  if (command === undefined) return `there is no command sheaf ${name}`;
  const known = ["--help", ...command.settings.keys(), ...[...command.flags.keys()].map((flag) => flag.split(" ")[0])];
  const unknown = flagsIn(line).find((flag) => !known.includes(flag));
  return unknown && `sheaf ${name} has no ${unknown}`;
}

function aboutScript(line) {
  const [, , script, separator, name] = line.split(" ");
  const { scripts } = JSON.parse(readFileSync(`${root}/package.json`, "utf8"));
  if (!Object.hasOwn(scripts, script)) return `package.json has no script ${script}`;
  if (separator !== "--" || !/^[a-z]/.test(name ?? "")) return undefined;
  const file = pathOf(script, name);
  const path = `${root}/${file}`;
  if (!existsSync(path)) return `there is no ${file}`;
  const source = sourceWithImports(path);
  const unknown = flagsIn(line).find((flag) => !new RegExp(`\\b${flag.slice(2)}\\b`).test(source));
  return unknown && `${file} does not know ${unknown}`;
}

const flagsIn = (line) => [...line.matchAll(/(?<=\s)--[a-z][\w-]*/g)].map(([flag]) => flag);

/** A script's text and that of the modules beside it that it imports. */
function sourceWithImports(path) {
  const source = readFileSync(path, "utf8");
  const beside = importsOf(source)
    .filter((specifier) => specifier.startsWith("."))
    .map((specifier) => new URL(specifier, `file://${path}`));
  return [
    source,
    ...beside
      .filter((url) => statSync(url, { throwIfNoEntry: false })?.isFile())
      .map((url) => readFileSync(url, "utf8")),
  ].join("\n");
}
