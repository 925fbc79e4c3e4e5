import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { transformSync } from "esbuild";
import { rollup } from "rollup";
import { dts } from "rollup-plugin-dts";
import { filesBelow, root } from "./files.mjs";

const library = `${root}/packages/sheaf`;

/** The parts of the library that several entry points share, by folder of `dist`; each is one file. */
const parts = [
  ["fleet", /^adapters\/nats\//],
  ["apis", /^adapters\/(shared|http|openai)\//],
  ["consume", /^core\/consume\./],
  ["elements", /^shared\/(binary-codec|element-types|packed)\./],
  ["core", /^(core|limits|policies|shared)\//],
  ["workers", /^node\/(?!worker\/(thread|process)-main\.)/],
  ["metrics", /^metrics\//],
  ["models", /^models\//],
  ["tuning", /^tuning\//],
];

/** The library's entry points, as its package.json has them: where each is in `lib`, and the module of `dist` behind it. */
export function libraryEntries() {
  const { exports } = JSON.parse(readFileSync(`${library}/package.json`, "utf8"));
  return Object.values(exports).flatMap((target) => {
    const path = target.import?.default;
    if (path === undefined) return [];
    const name = path.slice("./lib/".length, -".js".length);
    const isFolder = existsSync(`${library}/src/${name}/index.ts`);
    return [{ name, module: isFolder ? `${name}/index` : name }];
  });
}

/**
 * What is published: each entry point as one file, and the parts that they share, from the modules of `dist`. `lib` has it for
 * `import`; `cjs` for `require`, which jest and TypeScript's node10 need, and the types. A worker starts from its own entry.
 */
export async function bundleLibrary() {
  const folders = ["lib", "cjs"].map((name) => `${library}/${name}`);
  const inputFiles = [
    `${library}/package.json`,
    fileURLToPath(import.meta.url),
    ...filesBelow("packages/sheaf/dist", ""),
  ];
  const changed = Math.max(...inputFiles.map((file) => statSync(file).mtimeMs));
  if (folders.every((folder) => existsSync(folder) && statSync(folder).mtimeMs > changed)) return;
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  const entries = libraryEntries();
  const inputs = (ending) =>
    Object.fromEntries(entries.map(({ name, module }) => [name, `${library}/dist/${module}${ending}`]));
  const external = /^[@a-z]/;
  const manualChunks = (id) => parts.find(([, isPart]) => isPart.test(relative(`${library}/dist`, id)))?.[0];
  const output = { manualChunks, minifyInternalExports: false, hoistTransitiveImports: false };

  const code = await rollup({
    input: {
      ...inputs(".js"),
      "shared/thread-main": `${library}/dist/node/worker/thread-main.js`,
      "shared/process-main": `${library}/dist/node/worker/process-main.js`,
    },
    external,
    treeshake: { moduleSideEffects: false },
    onwarn,
  });
  const compact = {
    name: "compact",
    renderChunk: (text) =>
      transformSync(text, { minifySyntax: true, minifyWhitespace: true, lineLimit: 160, target: "node20" }),
  };
  for (const [index, format] of ["es", "cjs"].entries())
    await code.write({
      ...output,
      dir: folders[index],
      format,
      chunkFileNames: "shared/[name].js",
      plugins: [compact],
    });

  const types = await rollup({ input: inputs(".d.ts"), external, plugins: [dts()], onwarn });
  await types.write({
    ...output,
    dir: folders[1],
    entryFileNames: "[name].d.ts",
    chunkFileNames: "shared/[name].d.ts",
  });
  for (const { name } of entries) {
    const from = relative(dirname(`${folders[0]}/${name}`), `${folders[1]}/${name}.js`);
    writeFileSync(`${folders[0]}/${name}.d.ts`, `export * from "${from}";\n`);
  }
  writeFileSync(`${folders[1]}/package.json`, '{ "type": "commonjs" }\n');
}

/** tsc's helper for `using` asks for a global `this`; the types of one part may name another's that no entry point exports. */
function onwarn({ code, plugin, message }) {
  if (code === "THIS_IS_UNDEFINED" || plugin === "dts") return;
  throw new Error(message);
}
