import { readFileSync } from "node:fs";
import { slug } from "github-slugger";
import { defineConfig } from "vitepress";

const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
const { base, nav, sidebar } = read("../artifacts/site.json");
const { repository } = read("../../metadata.json");

export default defineConfig({
  title: "Sheaf",
  base,
  lang: "en",
  srcDir: "artifacts/pages",
  outDir: "dist",
  cacheDir: "artifacts/cache",
  // The server that a reader has started.
  ignoreDeadLinks: [/^http:\/\/localhost:8000/],
  markdown: {
    // Anchors as code hosts make them: the documents' own links lead to both.
    anchor: { slugify: slug },
    attrs: { disable: true },
    emoji: { defs: {}, shortcuts: {} },
    config(md) {
      // Vue would compute `{{words 3}}`.
      const { code_inline: code } = md.renderer.rules;
      md.renderer.rules.code_inline = (tokens, index, ...rest) => {
        tokens[index].attrSet("v-pre", "");
        return code(tokens, index, ...rest);
      };
    },
    // The output of a program: without colours, under a name of its own.
    languages: [{ name: "output", scopeName: "text.output", patterns: [] }],
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
  },
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${base}icon.svg` }]],
  themeConfig: {
    logo: "/icon.svg",
    nav,
    sidebar,
    outline: [2, 3],
    search: { provider: "local" },
    socialLinks: [{ icon: "github", link: repository, ariaLabel: "The repository" }],
    // The function is sent to the browser as its text: it can only use the page.
    editLink: { text: "Edit this page", pattern: ({ frontmatter }) => frontmatter.edit },
    externalLinkIcon: false,
  },
});
