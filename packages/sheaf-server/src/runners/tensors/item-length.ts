/** An item's length: the characters of its texts and the elements of its arrays and lists together; a lone number is 1. */
export function itemLength(item: unknown): number {
  if (typeof item === "string") return item.length;
  if (ArrayBuffer.isView(item)) return (item as Uint8Array).length;
  if (Array.isArray(item)) return item.reduce((sum: number, each: unknown) => sum + itemLength(each), 0);
  if (typeof item !== "object" || item === null) return 1;
  return Object.entries(item).reduce(
    (sum, [key, value]) => sum + (key.startsWith("shape:") ? 0 : itemLength(value)),
    0,
  );
}
