// A model of your own: any JSON value in, any out, a whole batch at a time, in a thread of its own. Put yours in `run`.
import { defineWorker } from "sheaf/node";

const words = { good: 1, great: 2, love: 2, bad: -1, awful: -2, hate: -2 };

/** What `sheaf tune ./sentiment.mjs` sends. */
export const sample = "a great day";

export default defineWorker({
  run: (texts) =>
    texts.map((text) => {
      if (typeof text !== "string") return new TypeError(`a text is needed, got ${typeof text}`);
      const score = (text.toLowerCase().match(/\w+/g) ?? []).reduce((sum, word) => sum + (words[word] ?? 0), 0);
      return { score, label: score > 0 ? "positive" : score < 0 ? "negative" : "neutral" };
    }),
});
