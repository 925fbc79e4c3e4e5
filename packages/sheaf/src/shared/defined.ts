/** Options without `undefined` values. */
export type Given<T> = { [Name in keyof T]: Exclude<T[Name], undefined> };

/** The properties that have a value, so that an option given as `undefined` keeps its default under a spread. */
export function defined<T extends object>(options: T): Given<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Given<T>;
}
