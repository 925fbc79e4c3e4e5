/** `from`, twice that … and `to`, which is the last one. */
export function doubling(from: number, to: number): number[] {
  const sizes: number[] = [];
  for (let size = from; size < to; size *= 2) sizes.push(size);
  return [...sizes, to];
}
