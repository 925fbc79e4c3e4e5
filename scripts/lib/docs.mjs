import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { filesBelow, root } from "./files.mjs";
import { anchors, links, sections, tableRows } from "./markdown.mjs";

/** Every Markdown file that a reader of the repository or of a package meets. */
export function documents() {
  const top = ["README", "ARCHITECTURE", "CONTRIBUTING", ".github/SECURITY", "scripts/RELEASING", "CHANGELOG"].map(
    (name) => join(root, `${name}.md`),
  );
  const packages = ["sheaf", "sheaf-server"].map((name) => join(root, `packages/${name}/README.md`));
  const below = ["docs", "deploy", "examples", "bench", "test/integration"].flatMap((folder) =>
    filesBelow(folder, ".md"),
  );
  // What was installed there is not ours.
  return [...top, ...packages, ...below].filter(
    (file) => existsSync(file) && !/\/(node_modules|\.venv|artifacts)\//.test(file),
  );
}

/** The relative links of a document that lead nowhere: to a file, or to a heading of a Markdown file. */
export function deadLinks(file, markdown = readFileSync(file, "utf8")) {
  return links(markdown)
    .filter((target) => !/^[a-z][a-z+.-]*:/i.test(target))
    .filter((target) => {
      const [path, anchor] = target.split("#");
      const found = path === "" ? file : resolve(dirname(file), decodeURIComponent(path));
      if (!existsSync(found)) return true;
      if (anchor === undefined || !found.endsWith(".md")) return false;
      return !anchors(found === file ? markdown : readFileSync(found, "utf8")).includes(anchor);
    })
    .map((target) => `${relative(root, file)}: dead link ${target}`);
}

/**
 * Compares the tables of a document with the code, both ways. `actual` maps each name to its default: undefined where
 * it has none. A documented default is the first `code` of the second column; "none" or prose where there is none.
 */
export function differences(markdown, heading, actual) {
  const documented = new Map();
  const complaints = [];
  for (const [nameCell, defaultCell = ""] of tableRows(markdown, heading))
    for (const [, name] of nameCell.matchAll(/`([^`]+)`/g)) {
      if (documented.has(name)) complaints.push(`${name} is documented twice`);
      documented.set(name, defaultCell);
    }
  for (const [name, value] of actual) {
    if (!documented.has(name)) complaints.push(`${name} is not documented`);
    else complaints.push(...differenceOfDefault(name, value, documented.get(name)));
  }
  for (const name of documented.keys())
    if (!actual.has(name)) complaints.push(`${name} is documented but does not exist`);
  return complaints;
}

/**
 * Compares docs/reference/commands.md with the commands, both ways: a section `sheaf NAME …` for each
 * command, with a table of its flags. `commands` maps each command's name to its flags, as flagsOf gives them.
 */
export function differencesOfCommands(markdown, commands) {
  const documented = new Map(
    sections(markdown)
      .map(({ title, text }) => [/^`sheaf ([\w-]+)/.exec(title)?.[1], text])
      .filter(([name]) => name !== undefined),
  );
  return [
    ...[...documented.keys()].filter((name) => !commands.has(name)).map((name) => `there is no command ${name}`),
    ...[...commands].flatMap(([name, flags]) =>
      documented.has(name)
        ? differences(documented.get(name), "flag", flags).map((complaint) => `sheaf ${name}: ${complaint}`)
        : [`sheaf ${name} has no section`],
    ),
  ];
}

function differenceOfDefault(name, value, cell) {
  const shown = /`([^`]+)`/.exec(cell)?.[1];
  const isLiteral = shown !== undefined && /^(?:[\d"'.]|-\d|true$|false$|Infinity$)/.test(shown);
  if (value === undefined) return isLiteral ? [`${name} has no default, documented is ${shown}`] : [];
  const expected = typeof value === "string" ? [value, JSON.stringify(value)] : [String(value)];
  const plain = shown?.replaceAll(/(?<=\d)[,_](?=\d)/g, "");
  if (expected.includes(shown) || expected.includes(plain)) return [];
  return [`${name} has the default ${expected.at(-1)}, documented is ${shown ?? cell}`];
}
