import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { root } from "./files.mjs";

const budgets = {
  "core with greedy()": { targetBytes: 8_000, without: ["auto"] },
  "core with its default policy": { targetBytes: 11_000, without: [] },
};

/**
 * Bytes of the built core, bundled and minified for an ES2023 runtime, then gzipped at level 9: what a user's bundler
 * makes of `import { createBatcher, greedy } from "sheaf"`, without and with the default policy `auto()`.
 */
export async function coreSizes() {
  const sizes = Object.entries(budgets).map(async ([name, { targetBytes, without }]) => {
    return [name, { bytes: await bundledBytes(without), targetBytes }];
  });
  return Object.fromEntries(await Promise.all(sizes));
}

/** Minified bytes of each module in the bundle with the default policy, largest first; before gzip. */
export async function coreModules() {
  const { metafile } = await bundle([]);
  const [{ inputs }] = Object.values(metafile.outputs);
  return Object.entries(inputs)
    .map(([path, { bytesInOutput }]) => ({ path, bytes: bytesInOutput }))
    .sort((left, right) => right.bytes - left.bytes);
}

async function bundledBytes(withoutPolicies) {
  const { outputFiles } = await bundle(withoutPolicies);
  return gzipSync(outputFiles[0].contents, { level: 9 }).byteLength;
}

function bundle(withoutPolicies) {
  return build({
    stdin: { contents: `export { createBatcher, greedy } from "sheaf";`, resolveDir: root },
    bundle: true,
    write: false,
    metafile: true,
    outfile: "core.js",
    minify: true,
    format: "esm",
    target: "es2023",
    plugins: [{ name: "leave policies out", setup: (esbuild) => leaveOut(esbuild, withoutPolicies) }],
  });
}

function leaveOut(esbuild, policies) {
  for (const policy of policies)
    esbuild.onLoad({ filter: new RegExp(`policies/${policy}(?:/index)?\\.js$`) }, () => ({
      contents: `export const ${policy} = 0;`,
    }));
}
