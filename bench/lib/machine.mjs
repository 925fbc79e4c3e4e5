import { cpus, totalmem } from "node:os";

/** One line for the head of every bench: a figure without its machine and its command is a rumour. */
export function machine() {
  const processors = cpus();
  const memoryGib = Math.round(totalmem() / 2 ** 30);
  return `Node ${process.version}, ${process.platform} ${process.arch}, ${processors.length} × ${processors[0]?.model.trim()}, ${memoryGib} GiB`;
}

export const median = (numbers) => {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

/** Rows of text, first row the head, as a Markdown table with its columns aligned. */
export function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => String(row[column]).length)));
  const line = (row) =>
    `| ${row.map((cell, column) => (column === 0 ? String(cell).padEnd(widths[0]) : String(cell).padStart(widths[column]))).join(" | ")} |`;
  const rule = `|${widths.map((width, column) => (column === 0 ? "-".repeat(width + 2) : `${"-".repeat(width + 1)}:`)).join("|")}|`;
  return [line(rows[0]), rule, ...rows.slice(1).map(line)].join("\n");
}
