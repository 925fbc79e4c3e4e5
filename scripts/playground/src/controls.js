import { element } from "./elements.js";
import { numbers, patterns } from "./settings.js";

/** @import { NumberName, Settings } from "./settings.js" */

/** The words for a slider's value where a number and a unit do not say it. */
const asWords = {
  tenants: (/** @type {number} */ value) => (value === 0 ? "not told apart" : String(value)),
  flood: (/** @type {number} */ value) => (value === 0 ? "nobody floods" : `${value} × the capacity`),
  patience: (/** @type {number} */ value) => (value === 0 ? "never" : `${value} ms`),
};

/** The groups of the form, and when a control is shown. */
const groups = /** @type {const} */ ([
  { title: "A run", controls: ["fixed", "perItem", "slots", "size"] },
  { title: "The calls", controls: ["pattern", "rate", "callers", "factor"] },
  { title: "Compared with", controls: ["window"] },
  { title: "Lengths", controls: ["lengths", "median", "spread", "perLength", "padded"] },
  { title: "Tenants", controls: ["tenants", "flood", "fair"] },
  { title: "Callers who try again", controls: ["patience", "attempts", "obey"] },
]);

/** @type {Partial<Record<keyof Settings, (settings: Settings) => boolean>>} */
const shownWhen = {
  rate: ({ pattern }) => pattern !== "closed",
  callers: ({ pattern }) => pattern === "closed",
  factor: ({ pattern }) => pattern === "surge",
  median: ({ lengths }) => lengths,
  spread: ({ lengths }) => lengths,
  perLength: ({ lengths }) => lengths,
  padded: ({ lengths }) => lengths,
  tenants: ({ pattern }) => pattern !== "closed",
  flood: ({ tenants, pattern }) => tenants > 0 && pattern !== "closed",
  fair: ({ tenants, pattern }) => tenants > 0 && pattern !== "closed",
  attempts: ({ patience }) => patience > 0,
  obey: ({ patience }) => patience > 0,
};

const switchLabels = {
  lengths: "Items differ in length",
  padded: "Each costs as much as the longest of its batch",
  fair: "fairKey: tenants take turns",
  obey: "Callers obey Retry-After",
};

/**
 * Fills the form; `changed` gets a setting's name and its new value.
 * @param {HTMLFormElement} form
 * @param {(name: keyof Settings, value: unknown) => void} changed
 * @returns {(settings: Settings) => void} shows settings
 */
export function controlsIn(form, changed) {
  /** @type {((settings: Settings) => void)[]} */
  const showing = [];
  for (const { title, controls } of groups) {
    const group = element("fieldset", {}, element("legend", {}, title));
    for (const name of controls) {
      const [control, show] =
        name === "pattern"
          ? select(changed)
          : name in switchLabels
            ? tick(/** @type {any} */ (name), changed)
            : slider(/** @type {any} */ (name), changed);
      showing.push((settings) => {
        control.hidden = shownWhen[name]?.(settings) === false;
        show(settings);
      });
      group.append(control);
    }
    showing.push((settings) => {
      group.hidden = controls.every((name) => shownWhen[name]?.(settings) === false);
    });
    form.append(group);
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  return (settings) => showing.forEach((show) => show(settings));
}

/** @returns {[HTMLElement, (settings: Settings) => void]} */
function slider(/** @type {NumberName} */ name, /** @type {(name: keyof Settings, value: unknown) => void} */ changed) {
  const { label, unit, stops } = numbers[name];
  const input = /** @type {HTMLInputElement} */ (
    element("input", { type: "range", id: name, min: "0", max: String(stops.length - 1), step: "1" })
  );
  const output = element("output", { for: name });
  input.addEventListener("input", () => changed(name, stops[Number(input.value)]));
  const show = (/** @type {Settings} */ settings) => {
    const value = settings[name];
    const nearest = stops.reduce(
      (best, stop, at) => (Math.abs(stop - value) < Math.abs(stops[best] - value) ? at : best),
      0,
    );
    const words = /** @type {any} */ (asWords)[name]?.(value) ?? `${value.toLocaleString("en-US")} ${unit}`.trim();
    input.value = String(nearest);
    input.style.setProperty("--share", String(nearest / (stops.length - 1)));
    input.setAttribute("aria-valuetext", words);
    output.textContent = words;
  };
  return [element("div", { class: "control" }, element("label", { for: name }, label), output, input), show];
}

/** @returns {[HTMLElement, (settings: Settings) => void]} */
function tick(
  /** @type {keyof typeof switchLabels} */ name,
  /** @type {(name: keyof Settings, value: unknown) => void} */ changed,
) {
  const input = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox", id: name }));
  input.addEventListener("change", () => changed(name, input.checked));
  const show = (/** @type {Settings} */ settings) => {
    input.checked = settings[name];
  };
  return [element("div", { class: "control check" }, input, element("label", { for: name }, switchLabels[name])), show];
}

/** @returns {[HTMLElement, (settings: Settings) => void]} */
function select(/** @type {(name: keyof Settings, value: unknown) => void} */ changed) {
  const options = Object.entries(patterns).map(([value, words]) => element("option", { value }, words));
  const input = /** @type {HTMLSelectElement} */ (element("select", { id: "pattern" }, ...options));
  input.addEventListener("change", () => changed("pattern", input.value));
  const show = (/** @type {Settings} */ { pattern }) => {
    input.value = pattern;
  };
  return [element("div", { class: "control" }, element("label", { for: "pattern" }, "They come"), input), show];
}
