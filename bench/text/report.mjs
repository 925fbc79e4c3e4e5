import { table } from "../lib/machine.mjs";
import { floorView, medianOf } from "./cells.mjs";

const fixed = (value, digits = 1) => (value === undefined || Number.isNaN(value) ? "–" : value.toFixed(digits));
const digitsOf = (value) => (value >= 100 ? 0 : 1);

/** The tables of a comparison: throughput and CPU in closed loops, latency and CPU in the open loop, memory. */
export function reportOf({ machine, command, loadBefore, stealShare, names, cells, plan }) {
  const parts = [
    `${machine}; load before ${fixed(loadBefore)}, steal ${fixed(100 * stealShare, 2)} % of a core`,
    command,
  ];
  const pick = (name, className, drive, load, key) => medianOf(cells, { name, className, drive, load }, key);
  const floorOf = (className, load, drive) => pick("floor", className, "floor", floorView(load, drive), "textsPerS");
  const loops = plan.classes.flatMap((className) => [
    ...(plan.drives.includes("closed") ? plan.callers.map((callers) => [className, "closed", callers]) : []),
    ...(plan.drives.includes("lists") && className !== "long" ? [[className, "lists", 16]] : []),
  ]);
  const label = ([className, drive, callers]) =>
    drive === "lists" ? `${className}, lists of 32, ${callers} callers` : `${className}, ${callers} callers`;
  if (loops.length > 0)
    parts.push(
      table([
        ["texts/s", ...names, "floor", `${names[0]} ÷ floor`],
        ...loops.map((loop) => {
          const [className, drive, callers] = loop;
          const own = names.map((name) => pick(name, className, drive, callers, "textsPerS"));
          const floor = callers === 1 ? NaN : floorOf(className, callers, drive);
          return [
            label(loop),
            ...[...own, floor].map((value) => fixed(value, digitsOf(value))),
            fixed(own[0] / floor, 2),
          ];
        }),
      ]),
      table([
        ["CPU ms a text", ...names],
        ...loops.map((loop) => [label(loop), ...names.map((name) => fixed(pick(name, ...loop, "cpuMs"), 2))]),
      ]),
    );
  if (plan.drives.includes("closed") && plan.callers.includes(1))
    parts.push(
      table([
        ["p50 ms, one caller", ...names],
        ...plan.classes.map((name) => [name, ...names.map((one) => fixed(pick(one, name, "closed", 1, "p50Ms")))]),
      ]),
    );
  if (plan.drives.includes("open"))
    parts.push(
      table([
        ["open loop, p50 · p99 ms · CPU ms a text", ...names],
        ...plan.classes.flatMap((className) =>
          [...new Set(cells.filter(({ drive }) => drive === "open").map(({ load }) => load))].map((share) => {
            const row = names.map((name) =>
              ["p50Ms", "p99Ms", "cpuMs"].map((key) => fixed(pick(name, className, "open", share, key))).join(" · "),
            );
            const rate = pick(names[0], className, "open", share, "ratePerS");
            return [`${className}, ${100 * share} %: ${fixed(rate)}/s`, ...row];
          }),
        ),
      ]),
    );
  const memory = (name) => cells.find((cell) => cell.drive === "memory" && cell.name === name)?.value;
  parts.push(`Memory (PSS, MiB): ${names.map((name) => `${name} ${fixed(memory(name), 0)}`).join(", ")}`);
  return parts.join("\n\n");
}
