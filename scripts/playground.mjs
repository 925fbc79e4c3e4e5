// `npm run playground`: bundles playground/ into one page, playground/dist/index.html, after a build of the packages.
import { mkdirSync, writeFileSync } from "node:fs";
import { root } from "./lib/files.mjs";
import { playgroundPage } from "./lib/playground.mjs";

const { html, scriptBytes } = await playgroundPage();
mkdirSync(`${root}/playground/dist`, { recursive: true });
writeFileSync(`${root}/playground/dist/index.html`, html);
console.log(`playground/dist/index.html: ${html.length} bytes, its script ${scriptBytes} bytes gzipped`);
