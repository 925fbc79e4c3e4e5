// `npm run playground`: builds the packages, whose output the page runs, and bundles scripts/playground/ into one page.
import { mkdirSync, writeFileSync } from "node:fs";
import { root } from "./lib/files.mjs";
import { playgroundPage } from "./lib/playground.mjs";

await import("./build.mjs");
const { html, scriptBytes } = await playgroundPage();
mkdirSync(`${root}/scripts/playground/dist`, { recursive: true });
writeFileSync(`${root}/scripts/playground/dist/index.html`, html);
console.log(`scripts/playground/dist/index.html: ${html.length} bytes, its script ${scriptBytes} bytes gzipped`);
