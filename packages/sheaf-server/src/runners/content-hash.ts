import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import * as nodeModule from "node:module";
import { basename, dirname, extname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { init, parse } from "es-module-lexer";
import { packageVersion } from "../shared/version.ts";
import { builtinModels } from "./builtin.ts";
import { pythonSources } from "./python/sources.ts";
import { parsedJson } from "./text/read-json.ts";

const hashLength = 12;

/**
 * The model that a word of `sheaf serve` names, as a hash of its content: two machines give the same text if and only if they
 * serve the same model. Of a file or a folder it covers every byte. Of a worker module it covers the module, every file
 * of the same project that it imports or names with `new URL("…", import.meta.url)`, and the versions of the packages
 * that it uses. Of a Python file it covers the file and its imports from its own folder. Files that either reads in other
 * ways, and the packages of a Python environment, are not seen.
 * @returns 12 hexadecimal characters.
 */
export async function contentHash(word: string): Promise<string> {
  const hash = createHash("sha256");
  if (Object.hasOwn(builtinModels, word)) hash.update(`${word} ${packageVersion()}`);
  else if ((await stat(word)).isDirectory()) await addFolder(hash, word);
  else if (word.endsWith(".onnx")) await addOnnxFile(hash, word);
  else if (word.endsWith(".py")) for (const file of await pythonSources(word)) await addFile(hash, file);
  else await addModule(hash, word);
  return hash.digest("hex").slice(0, hashLength);
}

async function addFolder(hash: Hash, folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.name.startsWith(".")) continue;
    hash.update(`\n${entry.name}\n`);
    const path = join(folder, entry.name);
    // Hugging Face's cache holds links to files.
    const found = await stat(path);
    if (found.isDirectory()) await addFolder(hash, path);
    else if (found.isFile()) await addFile(hash, path);
    else throw new Error(`${path} is neither a file nor a folder.`);
  }
}

/** With the weights that are kept beside it, under the names that exporters give them. */
async function addOnnxFile(hash: Hash, file: string): Promise<void> {
  await addFile(hash, file);
  const name = basename(file, ".onnx");
  const beside = new Set([`${name}.onnx.data`, `${name}.onnx_data`, `${name}.data`]);
  for (const entry of (await readdir(dirname(resolve(file)))).sort())
    if (beside.has(entry)) await addFile(hash, join(dirname(file), entry));
}

async function addFile(hash: Hash, path: string): Promise<void> {
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer);
}

async function addModule(hash: Hash, file: string): Promise<void> {
  await init;
  const start = resolve(file);
  const files = new Map<string, Buffer>();
  const packages = new Set<string>();
  const open = [start];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (files.has(path)) continue;
    const bytes = await readFile(path).catch(() => undefined);
    if (bytes === undefined) continue;
    files.set(path, bytes);
    if (!/^\.[mc]?[jt]s$/u.test(extname(path))) continue;
    for (const name of namesIn(bytes.toString("utf8"))) {
      const found = await find(name, path);
      if (found?.file !== undefined) open.push(found.file);
      if (found?.package !== undefined) packages.add(found.package);
    }
  }
  // Only the files' contents and relative positions count, not the absolute path.
  const digests = [...files.values()].map((bytes) => createHash("sha256").update(bytes).digest("hex"));
  const [first, ...others] = digests;
  hash.update([first, ...others.sort(), ...[...packages].sort()].join("\n"));
}

/** The files that a module imports, requires, or names beside itself. */
function namesIn(source: string): string[] {
  const imported = importsOf(source).flatMap(({ n }) => (n === undefined ? [] : [n]));
  const required = [...source.matchAll(/\brequire\(\s*["'`]([^"'`\n]+)["'`]\s*\)/gu)].map(([, name]) => name!);
  const beside = [...source.matchAll(/new URL\(\s*["'`]([^"'`\n]+)["'`]\s*,\s*import\.meta\.url/gu)].map(([, name]) =>
    /^[./]/u.test(name!) ? name! : `./${name}`,
  );
  return [...imported, ...required, ...beside];
}

const { stripTypeScriptTypes } = nodeModule as { stripTypeScriptTypes?: (source: string) => string };

function importsOf(source: string): readonly { readonly n: string | undefined }[] {
  try {
    return parse(source)[0];
  } catch {
    // TypeScript, where Node loads it.
  }
  try {
    return stripTypeScriptTypes === undefined ? [] : parse(stripTypeScriptTypes(source))[0];
  } catch {
    return [];
  }
}

interface Found {
  readonly file?: string | undefined;
  readonly package?: string | undefined;
}

async function find(name: string, from: string): Promise<Found | undefined> {
  if (name.startsWith("node:") || nodeModule.isBuiltin(name)) return undefined;
  if (/^(?:\.{0,2}\/|file:)/u.test(name)) {
    const path = fileURLToPath(new URL(name, pathToFileURL(from)));
    const isFile = (await stat(path).catch(() => undefined))?.isFile() === true;
    return { file: isFile ? path : required(name, from) };
  }
  if (name.startsWith("#")) return { file: required(name, from) };
  const owner = /^(?:@[^/]+\/)?[^/]+/u.exec(name)?.[0] ?? name;
  for (let folder = dirname(from); ; folder = dirname(folder)) {
    const manifest = await readFile(join(folder, "node_modules", owner, "package.json"), "utf8").catch(() => undefined);
    if (manifest !== undefined)
      return {
        package: `${owner}@${(parsedJson(manifest, `package.json of ${owner}`) as { version?: string }).version}`,
      };
    if (folder === dirname(folder)) return { package: owner };
  }
}

/** As CommonJS finds it, without an extension or through the package's own `imports`. */
function required(name: string, from: string): string | undefined {
  try {
    return createRequire(from).resolve(name);
  } catch {
    return undefined;
  }
}
