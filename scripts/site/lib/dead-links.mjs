import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { Parser } from "htmlparser2";

/**
 * The links and pictures of a built site that lead nowhere, each with its page: to a file that is not there, or to an id that
 * no element of the page has. `base` is the path the site is served at; addresses with a scheme do not count.
 */
export function complaintsAbout(folder, base = "/") {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".html"))
    .map((entry) => join(entry.parentPath, entry.name));
  const pages = new Map(files.map((file) => [file, linksAndIds(readFileSync(file, "utf8"))]));

  const isDead = (page, target) => {
    const url = new URL(target, `http://site.invalid${base}${relative(folder, page)}`);
    if (url.host !== "site.invalid") return false;
    if (!url.pathname.startsWith(base)) return true;
    const path = join(folder, decodeURIComponent(url.pathname.slice(base.length)));
    const file = path.endsWith("/") || path === folder ? join(path, "index.html") : path;
    if (!existsSync(file)) return true;
    const anchor = decodeURIComponent(url.hash.slice(1));
    return anchor !== "" && pages.has(file) && !pages.get(file).ids.has(anchor);
  };
  return [...pages].flatMap(([page, { links }]) =>
    [...links]
      .filter((target) => isDead(page, target))
      .map((target) => `${relative(folder, page)}: dead link ${target}`),
  );
}

/** The addresses that a page names, and the ids of its elements. */
export function linksAndIds(html) {
  const links = new Set();
  const ids = new Set();
  const parser = new Parser({
    onopentag(_, { href, src, srcset, id }) {
      for (const target of [href, src, srcset]) if (target !== undefined) links.add(target);
      if (id !== undefined) ids.add(id);
    },
  });
  parser.end(html);
  return { links, ids };
}
