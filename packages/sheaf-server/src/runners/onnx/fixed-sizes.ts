/** The smallest of some sizes that holds `count`; `count` itself where none does. */
export const sizeFor = (sizes: readonly number[], count: number): number =>
  sizes.find((size) => size >= count) ?? count;
