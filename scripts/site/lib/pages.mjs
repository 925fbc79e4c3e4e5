import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { documents } from "../../lib/docs.mjs";
import { root } from "../../lib/files.mjs";

/** The address of the repository at the code host. */
export const repository = JSON.parse(readFileSync(`${root}/packages/sheaf/package.json`, "utf8")).homepage.split(
  "#",
)[0];

/** The documents that are pages of the site: `{ source, route, markdown }`, the source from the repository's root. */
export const documentPages = () =>
  documents()
    .map((file) => relative(root, file))
    .map((source) => ({ source, route: routeOf(source), markdown: readFileSync(join(root, source), "utf8") }))
    .filter(({ route }) => route !== undefined);

/** The page of a document, such as `guide/fleet.md`; undefined for a document that stays in the repository. */
export function routeOf(source) {
  if (source === "README.md") return "index.md";
  const inDocs = source.replace(/^docs\//, "");
  const ofProject = /^(?:\.github|scripts)\/([A-Z]+\.md)$/.exec(source)?.[1];
  if (ofProject !== undefined) return `project/${ofProject.toLowerCase()}`;
  if (!inDocs.includes("/")) return source.endsWith(".md") ? `project/${inDocs.toLowerCase()}` : undefined;
  if (!/^(?:docs|examples)\/.*\.md$/.test(source)) return undefined;
  return inDocs.replace(/^(\w+)\/README\.md$/, "$1/index.md").replace(/\/README\.md$/, ".md");
}

/** The files beside the documents that pages show or link: pictures and reports. */
const fileExtensions = /\.(?:svg|png|jpe?g|html|json)$/;

/**
 * Where a target written in a document leads on the site: `{ url, kind }`, kind "page", "file" or "elsewhere". A page and
 * a file are named from the site's root; anything else in the repository is shown by its host.
 * @throws {Error} for a target that is not there.
 */
export function targetOf(source, target) {
  if (target.startsWith("#") || /^[a-z][a-z+.-]*:/i.test(target)) return { url: target, kind: "elsewhere" };
  const [path, anchor] = target.split("#");
  const file = resolve(root, dirname(source), decodeURIComponent(path));
  if (!existsSync(file)) throw new Error(`${source}: dead link ${target}`);
  const hash = anchor === undefined ? "" : `#${anchor}`;
  const found = relative(root, file);
  const isFolder = statSync(file).isDirectory();
  const document = isFolder ? join(found, "README.md") : found;
  const route = existsSync(join(root, document)) && document.endsWith(".md") ? routeOf(document) : undefined;
  if (route !== undefined) return { url: `/${route}${hash}`, kind: "page" };
  if (found.startsWith("docs/") && fileExtensions.test(found))
    return { url: `/${found.slice("docs/".length)}${hash}`, kind: "file", file: found };
  return { url: `${repository}/${isFolder ? "tree" : "blob"}/main/${found}${hash}`, kind: "elsewhere" };
}
