// llms.txt and llms-full.txt, as llmstxt.org describes them: the site for readers that are programs.

/** The site's list of pages: title, address of the Markdown and first sentence of each, by section. */
export function llmsIndex(pages, base = "/") {
  const home = pages.find(({ route }) => route === "index.md");
  const sections = Object.entries({
    Guide: "guide/",
    Reference: "reference/",
    API: "api/",
    Examples: "examples/",
    Reports: "reports/",
    Project: "project/",
  }).map(([title, folder]) => {
    const lines = pages
      .filter(({ route }) => route.startsWith(folder))
      .map((page) => `- [${page.title}](${base}${page.route}): ${page.summary}`);
    return [`## ${title}`, "", ...lines].join("\n");
  });
  return `${[`# ${home.title}`, `> ${home.summary}`, ...sections].join("\n\n")}\n`;
}

/** Every page but the reports, one after the other: those are figures of one machine. */
export const llmsFull = (pages) =>
  pages
    .filter(({ route }) => !route.startsWith("reports/"))
    .map(({ route, markdown }) => `<!-- ${route} -->\n\n${markdown.trim()}\n`)
    .join("\n");
