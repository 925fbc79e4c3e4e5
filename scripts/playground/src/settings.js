/**
 * @typedef {"poisson" | "periodic" | "burst" | "clump" | "surge" | "closed"} Pattern
 * @typedef {{
 *   fixed: number, perItem: number, size: number, slots: number, window: number,
 *   pattern: Pattern, rate: number, factor: number, callers: number,
 *   lengths: boolean, median: number, spread: number, perLength: number, padded: boolean,
 *   tenants: number, flood: number, fair: boolean,
 *   patience: number, attempts: number, obey: boolean, seed: number,
 * }} Settings
 */

const upTo = (/** @type {number} */ most, /** @type {readonly number[]} */ of = [1, 2, 3, 5, 7]) => {
  /** @type {number[]} */
  const values = [];
  for (let decade = 0.001; decade <= most; decade *= 10)
    for (const digit of of) values.push(Number((digit * decade).toPrecision(2)));
  return (/** @type {number} */ least) => values.filter((value) => value >= least && value <= most);
};

/** The numbers: a slider stops at `stops`, and the address may hold any number between the first and the last. */
export const numbers = {
  fixed: { label: "Fixed cost of a run", unit: "ms", stops: [0, ...upTo(200)(0.1)], value: 10 },
  perItem: { label: "Cost of one more item", unit: "ms", stops: upTo(50)(0.01), value: 0.3 },
  size: { label: "Largest batch", unit: "items", stops: [1, 2, 4, 8, 16, 32, 64, 128, 256], value: 32, isWhole: true },
  slots: { label: "Runs at once", unit: "", stops: [1, 2, 3, 4, 6, 8, 12, 16], value: 1, isWhole: true },
  window: { label: "The window", unit: "ms", stops: upTo(200)(1), value: 20 },
  rate: { label: "Calls a second", unit: "/s", stops: upTo(5000, [1, 1.5, 2, 3, 4, 5, 6, 8])(1), value: 150 },
  factor: { label: "Surge", unit: "× the rate", stops: [1, 2, 3, 4, 5, 6, 8, 10], value: 3 },
  callers: { label: "Callers", unit: "", stops: [1, 2, 4, 8, 16, 32, 64, 128, 256], value: 16, isWhole: true },
  median: { label: "Half are shorter than", unit: "tokens", stops: upTo(1000)(1), value: 30, isWhole: true },
  spread: {
    label: "1 in 100 is longer by",
    unit: "×",
    stops: [1, 2, 3, 5, 7, 10, 20, 30, 50, 100],
    value: 30,
    isWhole: true,
  },
  perLength: { label: "Cost of one token", unit: "ms", stops: upTo(1)(0.001), value: 0.02 },
  tenants: { label: "Tenants", unit: "", stops: [0, 2, 5, 10, 20, 50, 100], value: 0, isWhole: true },
  flood: { label: "One more floods with", unit: "× the capacity", stops: [0, 0.5, 1, 2, 3, 5, 7, 10], value: 0 },
  patience: { label: "Callers give up after", unit: "ms", stops: [0, ...upTo(10_000)(50)], value: 0, isWhole: true },
  attempts: { label: "Attempts of a caller", unit: "", stops: [1, 2, 3, 4, 5, 7, 10], value: 3, isWhole: true },
  seed: { label: "Seed", unit: "", stops: [0, 999_999], value: 1, isWhole: true },
};

/** @typedef {keyof typeof numbers} NumberName */

export const switches = { lengths: false, padded: false, fair: true, obey: false };

/** @type {Readonly<Record<Pattern, string>>} */
export const patterns = {
  poisson: "independent of each other",
  periodic: "evenly spaced",
  burst: "in bursts, then silence",
  clump: "16 at a time",
  surge: "a surge from second 4 to 14",
  closed: "each after its last answer",
};

/** @type {Settings} */
export const defaults = /** @type {any} */ ({
  ...Object.fromEntries(Object.entries(numbers).map(([name, { value }]) => [name, value])),
  ...switches,
  pattern: "poisson",
});

/**
 * The settings of an address, `#rate=300&pattern=burst`. A setting that the address does not hold has its default;
 * `ignored` names the parts that make no sense.
 * @param {string} hash
 * @returns {{ settings: Settings, ignored: string[] }}
 */
export function settingsOf(hash) {
  const settings = /** @type {any} */ ({ ...defaults });
  const ignored = [];
  for (const [name, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
    const value = valueOf(name, text);
    if (value === undefined) ignored.push(complaint(name.slice(0, 40), text.slice(0, 40)));
    else settings[name] = value;
  }
  return { settings, ignored: ignored.slice(0, 5) };
}

/** The shortest address of these settings: it holds only those that differ from their defaults. */
export function hashOf(/** @type {Settings} */ settings) {
  const entries = Object.entries(settings).filter(([name, value]) => value !== /** @type {any} */ (defaults)[name]);
  const text = new URLSearchParams(entries.map(([name, value]) => [name, shown(value)])).toString();
  return text === "" ? "" : `#${text}`;
}

const shown = (/** @type {unknown} */ value) => (typeof value === "boolean" ? (value ? "yes" : "no") : String(value));

/** @returns {unknown} undefined where the setting cannot have it */
function valueOf(/** @type {string} */ name, /** @type {string} */ text) {
  if (name === "pattern") return Object.hasOwn(patterns, text) ? text : undefined;
  if (Object.hasOwn(switches, name)) return text === "yes" ? true : text === "no" ? false : undefined;
  if (!Object.hasOwn(numbers, name) || !/^\d{1,6}(\.\d{1,4})?$/.test(text)) return undefined;
  const { least, most, isWhole } = rangeOf(/** @type {NumberName} */ (name));
  const value = Number(text);
  return value >= least && value <= most && (!isWhole || Number.isInteger(value)) ? value : undefined;
}

export function rangeOf(/** @type {NumberName} */ name) {
  const { stops, isWhole = false } = /** @type {{ stops: readonly number[], isWhole?: boolean }} */ (numbers[name]);
  return { least: stops[0], most: stops[stops.length - 1], isWhole };
}

function complaint(/** @type {string} */ name, /** @type {string} */ text) {
  if (name === "pattern") return `pattern=${text}: it must be one of ${Object.keys(patterns).join(", ")}`;
  if (Object.hasOwn(switches, name)) return `${name}=${text}: it must be yes or no`;
  if (!Object.hasOwn(numbers, name)) return `${name}: there is no such setting`;
  const { least, most, isWhole } = rangeOf(/** @type {NumberName} */ (name));
  return `${name}=${text}: it must be ${isWhole ? "a whole number" : "a number"} from ${least} to ${most}`;
}
