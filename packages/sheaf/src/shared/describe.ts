const longestText = 60;

/** A value in a few words, for "got …": texts in quotes, so that "32" and 32 differ, and at most 60 characters of one. */
export function describe(value: unknown): string {
  if (typeof value === "string") {
    const { length } = value;
    if (length <= longestText) return JSON.stringify(value);
    return `${JSON.stringify(`${value.slice(0, longestText)}…`)} (${length} characters)`;
  }
  if (typeof value === "function") return "a function";
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return `an array of ${value.length}`;
  // A generator's constructor has no name.
  const name = value.constructor?.name || Object.prototype.toString.call(value).slice(8, -1);
  return name === "Object" ? "an object" : `an object (${name})`;
}

/** A property of anything that was thrown; undefined where it has none, or where reading it throws. */
export function propertyOf(thrown: unknown, name: string): unknown {
  try {
    return (thrown as Record<string, unknown> | null | undefined)?.[name];
  } catch {
    return undefined;
  }
}
