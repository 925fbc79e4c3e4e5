import { gzipSync } from "node:zlib";
import { buildSync } from "esbuild";

/** The kB of what a user's bundler makes of the core and its default policy, minified and gzipped. */
export function bundledKb() {
  const stdin = { contents: `export { createBatcher, greedy } from "sheaf";`, resolveDir: import.meta.dirname };
  const options = { bundle: true, write: false, minify: true, format: "esm", target: "es2023" };
  const [{ contents }] = buildSync({ stdin, ...options }).outputFiles;
  return gzipSync(contents, { level: 9 }).byteLength / 1000;
}
