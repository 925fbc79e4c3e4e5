// The version that a change of the public surface demands. docs/stability.md states the same rules, and a test compares them.
import { deprecated, overload } from "./shapes.mjs";

/** The step of the version that a change takes, before 1.0 and from then on. */
export const steps = {
  breaking: { "0.x": "minor", "1.x": "major" },
  compatible: { "0.x": "patch", "1.x": "minor" },
  runtime: { "0.x": "minor", "1.x": "minor" },
};

/**
 * The differences of two surfaces: `{ text, kind }`, `kind` one of `steps`. A name that was added is compatible, except for one
 * that callers or older versions must give or know. One that was removed or changed is breaking, except for a function that
 * takes more optional parameters, for an option that has become optional, and for a name that is only deprecated. A dropped
 * runtime is a kind of its own.
 */
export function changesOf(recorded, actual) {
  return [...new Set([...Object.keys(recorded), ...Object.keys(actual)])].flatMap((area) => {
    const [before, now] = [recorded[area] ?? {}, actual[area] ?? {}];
    const added = Object.entries(now).filter(([name]) => !Object.hasOwn(before, name));
    const removed = Object.keys(before).filter((name) => !Object.hasOwn(now, name));
    const changed = Object.keys(before).filter((name) => Object.hasOwn(now, name) && before[name] !== now[name]);
    return [
      ...removed.map((name) => ({
        kind: area === "runtime" ? "runtime" : "breaking",
        text: `${area} ${name} is gone`,
      })),
      ...changed.map((name) => ({
        kind: isStillGood(name, before[name], now[name]) ? "compatible" : "breaking",
        text: `${area} ${name} was ${before[name]} and is ${now[name]}`,
      })),
      ...added.map(([name, shape]) => ({
        kind: isAskedOfOthers(name, shape) ? "breaking" : "compatible",
        text: `${area} ${name} is new`,
      })),
    ];
  });
}

/** Whether a caller gives this: an option, or a parameter in Python, but not a part of a result. */
const isSetByCallers = (name) => /(?:Options|Settings|Limits|Spec)\.|^\w+\(\w+\)$/.test(name);

/**
 * Whether a new name needs a change of its callers, or of an older version at the other end of a wire: it lacks a required
 * field, and an endpoint of sheaf/adapters/http refuses an unknown one.
 */
const isAskedOfOthers = (name, shape) =>
  (shape.startsWith("required") && (isSetByCallers(name) || /^(?:NATS|HTTP) /.test(name))) ||
  name.startsWith("HTTP request.");

function isStillGood(name, marked, markedNow) {
  const [before, now] = [marked, markedNow].map((shape) => shape.replaceAll(deprecated, ""));
  if (before === now) return true;
  if (isSetByCallers(name)) return before.startsWith("required") && !now.startsWith("required");
  const shapes = now.split(overload);
  return before.split(overload).every((old) => shapes.some((shape) => takesAll(shape, old)));
}

/** Whether every call of the old function is one of the new, as `(a, b?, c?)` takes all of `(a, b?)`; names do not count. */
function takesAll(shape, old) {
  const [, kind, list] = /^(function|method) \((.*)\)$/.exec(shape) ?? [];
  const [, oldKind, oldList] = /^(function|method) \((.*)\)$/.exec(old) ?? [];
  if (kind === undefined || kind !== oldKind) return shape === old;
  const [mine, theirs] = [list, oldList].map((text) => text.split(", ").filter(Boolean));
  const isFree = (parameter) => /\?$|^\.\.\./.test(parameter);
  return (
    mine.length >= theirs.length &&
    mine.every((parameter, at) => isFree(parameter) || (at < theirs.length && !isFree(theirs[at])))
  );
}

/** The steps of a version, the largest first. */
export const stepsBySize = ["major", "minor", "patch"];

/** The largest step that these changes demand of a version of the line `"0.x"` or `"1.x"`; undefined without changes. */
export function stepOf(changes, line) {
  const demanded = changes.map(({ kind }) => steps[kind][line]);
  return stepsBySize.find((step) => demanded.includes(step));
}

export const lineOf = (version) => (version.startsWith("0.") ? "0.x" : "1.x");

/** The report of a test that found changes. */
export function reportOf(changes, version) {
  const line = lineOf(version);
  return [
    ...changes.map(({ kind, text }) => `${kind}: ${text} (at least a ${steps[kind][line]} version)`),
    `Together at least a ${stepOf(changes, line)} version after ${version}, by docs/stability.md. If it is meant, run ` +
      "node scripts/record.mjs surface, and tell users in CHANGELOG.md.",
  ].join("\n");
}
