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
