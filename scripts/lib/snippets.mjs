import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { documents } from "./docs.mjs";
import { root } from "./files.mjs";
import { codeBlocks } from "./markdown.mjs";

/** The TypeScript blocks of all documents, each with the document and the line it starts at. */
export function snippets(files = documents()) {
  return files.flatMap((file) =>
    codeBlocks(readFileSync(file, "utf8"))
      .filter(({ language }) => language === "ts")
      .map((block) => ({ ...block, document: relative(root, file) })),
  );
}

/**
 * Compiles snippets against the built packages by their public names, strictly, into a folder inside the repository
 * (where those names resolve). Returns the compiler's messages and, for each snippet, its JavaScript file.
 */
export function compileSnippets(blocks, folder = join(root, "artifacts/snippets")) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const names = blocks.map(({ document, line }) => `${document.replaceAll(/[^\w]+/g, "-")}-line-${line}`);
  for (const [index, { text, prelude }] of blocks.entries())
    writeFileSync(join(folder, `${names[index]}.ts`), `${prelude.replaceAll("\n", " ")}\n${text}\nexport {};\n`);
  const options = {
    extends: join(root, "tsconfig.base.json"),
    compilerOptions: {
      rootDir: ".", outDir: "out", declaration: false, declarationMap: false, isolatedDeclarations: false,
      erasableSyntaxOnly: false, noUnusedLocals: false, noUnusedParameters: false,
    }, // prettier-ignore
    include: ["*.ts"],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(options));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  const { stdout, status } = spawnSync(
    process.execPath,
    [join(root, "node_modules/typescript/bin/tsc"), "-p", folder],
    {
      cwd: folder,
      encoding: "utf8",
    },
  );
  const files = names.map((name) => join(folder, "out", `${name}.js`));
  return { ok: status === 0, messages: stdout.trim(), files };
}

/** Runs a compiled snippet; what is wrong with it, or undefined. */
export function complaintOnRun({ document, line, output }, file) {
  const { status, stdout, stderr, error } = spawnSync(process.execPath, [file], { encoding: "utf8", timeout: 30_000 });
  const place = `${document}:${line} (${basename(file)})`;
  if (status !== 0) return `${place} failed: ${error?.message ?? stderr}`;
  if (output === undefined || stdout.trim() === output.trim()) return undefined;
  return `${place} printed\n${stdout.trim()}\nbut the document says\n${output.trim()}`;
}
