import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { filesBelow, root } from "./files.mjs";
import { anchors, links, tableRows } from "./markdown.mjs";

/** Every Markdown file that a reader of the repository or of a package meets. */
export function documents() {
  const top = ["README", "ARCHITECTURE", "CONTRIBUTING", "SECURITY", "CHANGELOG"].map((name) =>
    join(root, `${name}.md`),
  );
  const packages = ["sheaf", "sheaf-server"].map((name) => join(root, `packages/${name}/README.md`));
  const below = ["docs", "examples", "bench", "integration"].flatMap((folder) => filesBelow(folder, ".md"));
  return [...top, ...packages, ...below].filter((file) => existsSync(file) && !file.includes("/node_modules/"));
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

function differenceOfDefault(name, value, cell) {
  const shown = /`([^`]+)`/.exec(cell)?.[1];
  const isLiteral = shown !== undefined && /^(?:[\d"'.-]|true$|false$|Infinity$)/.test(shown);
  if (value === undefined) return isLiteral ? [`${name} has no default, documented is ${shown}`] : [];
  const expected = typeof value === "string" ? [value, JSON.stringify(value)] : [String(value)];
  if (shown !== undefined && expected.includes(shown.replaceAll(/(?<=\d)[,_](?=\d)/g, ""))) return [];
  return [`${name} has the default ${expected.at(-1)}, documented is ${shown ?? cell}`];
}
