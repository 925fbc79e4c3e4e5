/** The properties that have a value, so that an option given as `undefined` keeps its default under a spread. */
export function defined<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T;
}
