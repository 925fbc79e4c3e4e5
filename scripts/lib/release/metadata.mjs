import { readFileSync } from "node:fs";
import { root } from "../files.mjs";

/** What npm shows of the packages, all from one file that the owner fills in. */
export const readMetadata = (folder = root) => JSON.parse(readFileSync(`${folder}/scripts/metadata.json`, "utf8"));

/** The packages in the order in which they are published: the server depends on the library. */
export const packageNames = ["sheaf", "sheaf-server"];

/** A manifest with its metadata in npm's form, after `version`; the rest stays as it is. */
export function withMetadata({ name, version, ...rest }, { author, repository, homepage, bugs, packages }) {
  const { description, keywords } = packages[name];
  const stated = {
    description,
    keywords,
    author,
    homepage,
    bugs: { url: bugs },
    repository: { type: "git", url: `git+${repository}.git`, directory: `packages/${name}` },
    // The provenance says which commit and which workflow a tarball comes from; npm makes it where a workflow publishes.
    publishConfig: { access: "public", provenance: true },
  };
  const others = Object.entries(rest).filter(([field]) => !Object.hasOwn(stated, field));
  return { name, version, ...stated, ...Object.fromEntries(others) };
}

/** The fields of metadata.json that the owner has not filled in yet, with what they say. */
export function placeholdersIn(metadata) {
  const stated = ["author", "repository", "homepage", "bugs"].map((field) => [field, metadata[field] ?? ""]);
  return stated
    .filter(([, text]) => text === "" || /\bOWNER\b|\bexample\.com\b/.test(text))
    .map(([field, text]) => `${field}: ${text}`);
}
