import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { root } from "./files.mjs";

/** The page "Would it pay for me?" as one file, and the bytes of its script, gzipped at level 9. */
export async function playgroundPage() {
  const folder = `${root}/scripts/playground`;
  const [script, style] = await Promise.all([bundled(`${folder}/src/main.js`), bundled(`${folder}/style.css`)]);
  // No text of the script may end the element that holds it.
  const inline = script.replaceAll("</script", "<\\/script");
  const icon = readFileSync(`${root}/packages/sheaf-server/src/dashboard/page/icon.svg`, "utf8").trim();
  const html = readFileSync(`${folder}/index.html`, "utf8")
    .replace("<!-- icon.svg -->", () => icon)
    .replace("/* style.css */", () => style)
    .replace("/* main.js */", () => inline);
  return { html, scriptBytes: gzipSync(inline, { level: 9 }).byteLength };
}

/** The page compares without this policy, and its workers neither come nor go. */
const neverRun = {
  "policies/adaptive": "adaptive",
  "tuning/scaling/autoscaler": "Autoscaler",
  "tuning/scaling/scaling": "scalingSettings",
};

async function bundled(file) {
  const { outputFiles } = await build({
    entryPoints: [file],
    bundle: true,
    write: false,
    minify: true,
    format: "iife",
    target: file.endsWith(".css") ? undefined : "es2023",
    legalComments: "none",
    // A browser has neither.
    define: { "globalThis.process": "undefined", setImmediate: "undefined" },
    plugins: [leavingOut(neverRun)],
  });
  return outputFiles[0].text.trim();
}

/** A plugin that leaves modules out of a bundle: by the end of their path, the name that each one exports. */
const leavingOut = (modules) => ({
  name: "leave modules out",
  setup(esbuild) {
    for (const [path, name] of Object.entries(modules))
      esbuild.onLoad({ filter: new RegExp(`/${path}(?:/index)?\\.js$`) }, () => ({
        contents: `export const ${name} = 0;`,
      }));
  },
});
