import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { format } from "prettier";
import { root } from "./files.mjs";

/** The bundles that are stated, each with the policies left out of it. */
const bundles = { "core with greedy()": ["auto"], "core with its default policy": [] };

/**
 * Bytes of the built core, bundled and minified for an ES2023 runtime, then gzipped at level 9: what a user's bundler
 * makes of `import { createBatcher, greedy } from "sheaf"`, without and with the default policy `auto()`.
 */
export async function coreSizes() {
  const sizes = Object.entries(bundles).map(async ([name, without]) => [name, { bytes: await bundledBytes(without) }]);
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

/** The same by room of the sources, such as core/queue, largest first. */
export async function coreRooms() {
  const rooms = new Map();
  for (const { path, bytes } of await coreModules()) {
    const [, room] = /packages\/sheaf\/dist\/((?:core\/)?[\w-]+)\//.exec(path) ?? [];
    if (room !== undefined) rooms.set(room, (rooms.get(room) ?? 0) + bytes);
  }
  return [...rooms].map(([room, bytes]) => ({ room, bytes })).sort((left, right) => right.bytes - left.bytes);
}

/** docs/stability.md with its table of the bundle, and the sentence above it, written again. */
export async function withSizeTable(text) {
  const [rooms, sizes] = await Promise.all([coreRooms(), coreSizes()]);
  const [greedy, whole] = Object.values(sizes).map(({ bytes }) => kB(bytes));
  const sum = rooms.reduce((total, { bytes }) => total + bytes, 0);
  const lines = [
    `${whole} minified and gzipped, ${greedy} of it without \`auto()\`; before gzip it is ${kB(sum)}:`,
    "",
    "| room | minified | contents |",
    "| --- | ---: | --- |",
    ...rooms.map(({ room, bytes }) => `| ${room} | ${kB(bytes)} | ${purposeOf(room)} |`),
  ];
  const written = text.replace(/(?<=<!-- size -->\n)[^]*?(?=<!-- end of size -->)/, `\n${lines.join("\n")}\n\n`);
  return format(written, { parser: "markdown", printWidth: 120 });
}

const kB = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;

/** The first sentence of the room's README.md. */
const purposeOf = (room) => readFileSync(`${root}/packages/sheaf/src/${room}/README.md`, "utf8").split(/\.(?:\s|$)/)[0];

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
    plugins: [leavingOut(Object.fromEntries(withoutPolicies.map((name) => [`policies/${name}`, name])))],
  });
}

/** A plugin that leaves modules out of a bundle: by the end of their path, the name that each one exports. */
export const leavingOut = (modules) => ({
  name: "leave modules out",
  setup(esbuild) {
    for (const [path, name] of Object.entries(modules))
      esbuild.onLoad({ filter: new RegExp(`/${path}(?:/index)?\\.js$`) }, () => ({
        contents: `export const ${name} = 0;`,
      }));
  },
});
