import { readdir, readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

/**
 * A Python file and its imports from its own folder: files, and packages as a whole. Sorted, the file itself first.
 * @throws {Error} the file cannot be read.
 */
export async function pythonSources(file: string): Promise<string[]> {
  const start = resolve(file);
  const folder = dirname(start);
  const found = new Set<string>();
  const open = [start];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (found.has(path)) continue;
    found.add(path);
    const source = await readFile(path, "utf8");
    for (const name of importedNames(source)) open.push(...(await filesOf(name, folder)));
  }
  found.delete(start);
  return [start, ...[...found].sort()];
}

/** First parts of the modules that a source imports; relative imports stay within a package, which is read as a whole. */
function importedNames(source: string): Set<string> {
  const names = [...source.matchAll(/^\s*import\s+([\w., \t]+)/gmu)].flatMap(([, list]) =>
    list!.split(",").map((entry) => entry.trim().split(/[.\s]/u, 1)[0]!),
  );
  const sources = [...source.matchAll(/^\s*from\s+(\w+)[\w.]*\s+import\b/gmu)].map(([, name]) => name!);
  return new Set([...names, ...sources].filter((name) => name !== ""));
}

async function filesOf(name: string, folder: string): Promise<string[]> {
  const module = `${name}.py`;
  const entries = await readdir(folder, { withFileTypes: true });
  const isFile = entries.some((entry) => entry.name === module && !entry.isDirectory());
  const isPackage = entries.some((entry) => entry.name === name && entry.isDirectory());
  return [...(isFile ? [join(folder, module)] : []), ...(isPackage ? await sourcesBelow(join(folder, name)) : [])];
}

async function sourcesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith(".py"))
    .map((entry) => join(entry.parentPath, entry.name));
}
