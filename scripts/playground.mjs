// `npm run playground`: builds the packages, whose output the page runs, and bundles playground/ into one page.
import { mkdirSync, writeFileSync } from "node:fs";
import { root } from "./lib/files.mjs";
import { playgroundPage } from "./lib/playground.mjs";

await import("./build.mjs");
const { html, scriptBytes } = await playgroundPage();
mkdirSync(`${root}/playground/dist`, { recursive: true });
writeFileSync(`${root}/playground/dist/index.html`, html);
console.log(`playground/dist/index.html: ${html.length} bytes, its script ${scriptBytes} bytes gzipped`);
