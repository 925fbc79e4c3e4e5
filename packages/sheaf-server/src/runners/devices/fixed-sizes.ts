/** `from`, twice that … and `to`, which is the last one. */
export function doubling(from: number, to: number): number[] {
  const sizes: number[] = [];
  for (let size = from; size < to; size *= 2) sizes.push(size);
  return [...sizes, to];
}

/** The smallest of some sizes that holds `count`; `count` itself where none does. */
export const sizeFor = (sizes: readonly number[], count: number): number =>
  sizes.find((size) => size >= count) ?? count;
