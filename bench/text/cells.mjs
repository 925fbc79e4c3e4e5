import { median } from "../lib/machine.mjs";

/** The median over the rounds of one figure of a cell; NaN where there is none. */
export const medianOf = (cells, { name, className, drive, load }, key) =>
  median(
    cells
      .filter(
        (cell) => cell.name === name && cell.className === className && cell.drive === drive && cell.load === load,
      )
      .flatMap((cell) => cell[key] ?? []),
  );

/** The texts that a server has in view at once, as the floor measures them. */
export const floorView = (callers, drive) => (drive === "lists" ? 512 : callers >= 64 ? 64 : 16);
