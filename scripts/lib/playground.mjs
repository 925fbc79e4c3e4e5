import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { root } from "./files.mjs";

/** The page "Would it pay for me?" as one file, and the bytes of its script, gzipped at level 9. */
export async function playgroundPage() {
  const folder = `${root}/playground`;
  const [script, style] = await Promise.all([bundled(`${folder}/src/main.js`), bundled(`${folder}/style.css`)]);
  // No text of the script may end the element that holds it.
  const inline = script.replaceAll("</script", "<\\/script");
  const html = readFileSync(`${folder}/index.html`, "utf8")
    .replace("/* style.css */", () => style)
    .replace("/* main.js */", () => inline);
  return { html, scriptBytes: gzipSync(inline, { level: 9 }).byteLength };
}

async function bundled(file) {
  const { outputFiles } = await build({
    entryPoints: [file],
    bundle: true,
    write: false,
    minify: true,
    format: "iife",
    target: file.endsWith(".css") ? undefined : "es2023",
    legalComments: "none",
  });
  return outputFiles[0].text.trim();
}
