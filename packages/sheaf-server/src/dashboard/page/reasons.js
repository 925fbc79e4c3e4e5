/** Why a batch was sent, in words, and the name of its colour; in the order in which they are drawn. */
export const reasons = /** @type {const} */ ({
  full: { label: "Full", text: "as many items waited as a batch may hold", colour: "--c-full" },
  weight: { label: "Heavy", text: "the next item would have been too much for the weight", colour: "--c-weight" },
  idle: { label: "Slot free", text: "a slot was free, and waiting longer would not have paid", colour: "--c-idle" },
  hold: { label: "Held", text: "held a moment for more items, then sent", colour: "--c-hold" },
  window: { label: "Window", text: "the time to collect was over", colour: "--c-window" },
  immediate: { label: "Immediate", text: "an item that takes the next free slot", colour: "--c-immediate" },
  flush: { label: "Flush", text: "flush() was called", colour: "--c-flush" },
  drain: { label: "Drain", text: "the batcher was finishing its work", colour: "--c-drain" },
});

/** Also for a reason that this page does not know. */
export const reasonOf = (/** @type {string} */ name) =>
  /** @type {Record<string, { label: string, text: string, colour: string }>} */ (reasons)[name] ?? {
    label: name,
    text: "",
    colour: "--c-flush",
  };

/** Why a batch held no more items, in words; in the order in which they are listed. */
const sizeReasons = /** @type {const} */ ({
  all: "they held every item that waited",
  full: "they held as many items as a batch may",
  cost: "by the measured cost of runs, fewer items at a time are answered sooner",
  group: "the other waiting items were of other groups",
  weight: "the next item would have been too heavy",
  order: "the other waiting items had to wait for earlier ones of their key",
  limit: "a rate limit or a short queue allowed no more",
  alone: "the item shares its run with no other",
});

export const sizeReasonText = (/** @type {string} */ name) =>
  /** @type {Record<string, string>} */ (sizeReasons)[name] ?? name;
