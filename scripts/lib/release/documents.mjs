const heading = "## Unreleased\n";

/**
 * The changelog with what is unreleased under the version and its day, and an empty "Unreleased" above it.
 * @throws {Error} where nothing is unreleased.
 */
export function cutChangelog(text, version, day) {
  const notes = unreleasedNotes(text);
  if (notes === "") throw new Error("CHANGELOG.md has nothing under Unreleased: there is nothing to release");
  return text.replace(heading, () => `${heading}\n## ${version} (${day})\n`);
}

/** What CHANGELOG.md says under Unreleased. */
export function unreleasedNotes(text) {
  const from = text.indexOf(heading);
  if (from === -1) throw new Error(`CHANGELOG.md has no line "${heading.trim()}"`);
  const [notes] = text.slice(from + heading.length).split(/^## /m);
  return notes.trim();
}

/** A document without what holds only until the first release: `<!-- until released -->` … `<!-- released -->`. */
export const withoutPreReleaseNotes = (text) =>
  text.replaceAll(/<!-- until released -->\n[^]*?<!-- released -->\n\n?/g, "");
