import fc from "fast-check";

/** Bytes flipped, cut out, doubled or put in at a few places. */
export function mutated(bytes) {
  const edit = fc.tuple(
    fc.constantFrom("flip", "cut", "double", "insert"),
    fc.double({ min: 0, max: 1, noNaN: true }),
    fc.nat(255),
  );
  return fc.tuple(bytes, fc.array(edit, { minLength: 1, maxLength: 4 })).map(([original, edits]) => {
    let result = original;
    for (const [kind, place, byte] of edits) {
      const at = Math.floor(place * result.length);
      const [head, tail] = [result.subarray(0, at), result.subarray(at)];
      if (kind === "flip") result = Buffer.concat([head, Buffer.from([byte]), tail.subarray(1)]);
      else if (kind === "cut") result = Buffer.concat([head, tail.subarray(1 + (byte % 16))]);
      else if (kind === "double") result = Buffer.concat([head, tail.subarray(0, byte), tail]);
      else result = Buffer.concat([head, Buffer.from([byte, byte ^ 0x55]), tail]);
    }
    return result;
  });
}
