/** Words of a text, and the tokens at its ends. */
const ownTokens = 2;
const mostTokens = 512;
const knownWords = 30_000;
const count = 512;

/** Tokens of a text by its class. */
export const classes = {
  /** 14 in the mean, 8 to 20. */
  short: (random) => 8 + Math.floor(13 * random()),
  /** Lognormal with median 27 and σ 1: 45 in the mean. */
  mixed: (random) => Math.min(mostTokens, Math.max(4, Math.round(27 * Math.exp(normal(random))))),
  /** 425 in the mean, 340 to 510. */
  long: (random) => 340 + Math.floor(171 * random()),
};

/** The texts of a class with their tokens, the same each time. */
export function drawTexts(name, random) {
  return Array.from({ length: count }, () => {
    const tokens = classes[name](random);
    const words = Array.from({ length: tokens - ownTokens }, () => `w${Math.floor(knownWords * random())}`);
    return { text: words.join(" "), tokens };
  });
}

const normal = (random) => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
