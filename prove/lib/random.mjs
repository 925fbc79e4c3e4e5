/** A seeded stream of numbers in [0, 1), Mulberry32: the same seed draws the same. */
export function randomFrom(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Draws from one stream. */
export function drawing(random) {
  const below = (count) => Math.floor(random() * count);
  return {
    below,
    between: (from, to) => from + random() * (to - from),
    chance: (share) => random() < share,
    of: (values) => values[below(values.length)],
  };
}
