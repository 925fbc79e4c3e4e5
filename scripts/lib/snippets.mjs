import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { documents } from "./docs.mjs";
import { root } from "./files.mjs";
import { codeBlocks } from "./markdown.mjs";

/** The TypeScript (`ts`) or JavaScript (`js`) blocks of all documents, each with the document and the line it starts at. */
export function snippets(files = documents(), language = "ts") {
  return files.flatMap((file) =>
    codeBlocks(readFileSync(file, "utf8"))
      .filter((block) => block.language === language)
      .map((block) => ({ ...block, document: relative(root, file) })),
  );
}

// JavaScript leaves out what only annotations can say; names, options and their types are checked all the same.
const compilerOptions = {
  ts: { isolatedDeclarations: false, erasableSyntaxOnly: false },
  js: {
    allowJs: true,
    checkJs: true,
    noImplicitAny: false,
    useUnknownInCatchVariables: false,
    isolatedDeclarations: false,
  },
};

/**
 * Compiles snippets of one language against the built packages by their public names, TypeScript strictly, into a folder
 * inside the repository (where those names resolve). Returns the compiler's messages and, for each snippet, its
 * JavaScript file.
 */
export function compileSnippets(blocks, folder = join(root, "artifacts/snippets")) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const language = blocks[0]?.language ?? "ts";
  const names = blocks.map(({ document, line }) => `${document.replaceAll(/[^\w]+/g, "-")}-line-${line}`);
  for (const [index, { text, prelude }] of blocks.entries())
    writeFileSync(
      join(folder, `${names[index]}.${language}`),
      `${prelude.replaceAll("\n", " ")}\n${text}\nexport {};\n`,
    );
  const options = {
    extends: join(root, "packages/tsconfig.base.json"),
    compilerOptions: {
      rootDir: ".", outDir: "out", declaration: false, declarationMap: false,
      noUnusedLocals: false, noUnusedParameters: false, ...compilerOptions[language],
    }, // prettier-ignore
    include: [`*.${language}`],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(options));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const { stdout } = spawnSync(process.execPath, [tsc, "-p", folder], { cwd: folder, encoding: "utf8" });
  // "… is of type 'unknown'": only an annotation, which JavaScript has none of, could say more.
  const messages = stdout
    .split("\n")
    .filter((line) => line.trim() !== "" && !(language === "js" && /TS18046/.test(line)));
  const files = names.map((name) => join(folder, "out", `${name}.js`));
  return { ok: messages.length === 0, messages: messages.join("\n"), files };
}

/** Runs a compiled snippet with this Node or another command, in the file's folder; what is wrong with it, or undefined. */
export function complaintOnRun({ document, line, output }, file, [command, ...parameters] = [process.execPath]) {
  const options = { cwd: dirname(file), encoding: "utf8", timeout: 300_000 };
  const { status, stdout, stderr, error } = spawnSync(command, [...parameters, file], options);
  const place = `${document}:${line} (${basename(file)})`;
  if (status !== 0) return `${place} failed: ${error?.message ?? stderr}`;
  if (output === undefined || stdout.trim() === output.trim()) return undefined;
  return `${place} printed\n${stdout.trim()}\nbut the document says\n${output.trim()}`;
}
