import { readFileSync } from "node:fs";
import { slug } from "github-slugger";
import { defineConfig } from "vitepress";
import { licences } from "../lib/licences.mjs";
import { adapt } from "../lib/markdown-it.mjs";
import { repository } from "../lib/pages.mjs";

const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
const { base, nav, sidebar } = read("../artifacts/site.json");

export default defineConfig({
  title: "Sheaf",
  base,
  lang: "en",
  srcDir: "artifacts/pages",
  outDir: "dist",
  cacheDir: "artifacts/cache",
  // A server that the reader has started.
  ignoreDeadLinks: [/^http:\/\/localhost:/],
  markdown: {
    // Anchors as code hosts make them: the documents' own links lead to both.
    anchor: { slugify: slug },
    attrs: { disable: true },
    config: adapt,
    // The output of a program: without colours, under a name of its own.
    languages: [{ name: "output", scopeName: "text.output", patterns: [] }],
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
  },
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${base}icon.svg` }]],
  vite: { plugins: [licences()], build: { chunkSizeWarningLimit: 2000 } },
  themeConfig: {
    logo: "/icon.svg",
    nav,
    sidebar,
    outline: [2, 3],
    search: { provider: "local" },
    socialLinks: [{ icon: "github", link: repository, ariaLabel: "The repository" }],
    // The function is sent to the browser as its text: it can only use the page.
    editLink: { text: "Edit this page", pattern: ({ frontmatter }) => frontmatter.edit },
    footer: { message: `<a href="${base}licences.txt" target="_self">Licences of this site's parts</a>` },
  },
});
