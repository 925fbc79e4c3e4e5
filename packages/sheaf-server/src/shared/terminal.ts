import { maskedWords } from "./masked.ts";
/** The part of a stream that output needs; `process.stdout` and `process.stderr` are two. */
export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** The terminal of a command: the process's, or a test's. */
export interface CommandStreams {
  /** Data. */
  readonly stdout: Output;
  /** Progress and errors. */
  readonly stderr: Output;
  /** Aborts on the first interrupt. */
  readonly signal?: AbortSignal | undefined;
}

/** Rows of text, the first one the head, in aligned columns: names and text to the left, figures to the right. */
export function textTable(rows: readonly (readonly string[])[]): string {
  const [head = []] = rows;
  const widths = head.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const isFigure = head.map((_, column) => column > 0 && rows.slice(1).every((row) => /^[\d.,–-]/.test(row[column]!)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => (isFigure[column]! ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
      .join("  ")
      .trimEnd();
  return rows.map(line).join("\n");
}

/** A duration in milliseconds as people write it: three figures, µs below 0.1 ms, seconds from 10,000 ms on. */
export function shownMs(ms: number): string {
  if (ms >= 10_000) return `${figures(ms / 1000)} s`;
  if (ms > 0 && ms < 0.1) return `${figures(ms * 1000)} µs`;
  return `${figures(ms)} ms`;
}

/** Three significant figures, no exponent, thousands with commas. */
export function figures(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const decimals = value === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toLocaleString("en-US", { maximumFractionDigits: Math.min(decimals, 6) });
}

export const percent = (share: number): string => `${figures(100 * share)} %`;

/** A command as one would type it, without secrets. */
export const shownCommand = (name: string, args: readonly string[]): string =>
  [
    "sheaf",
    name,
    ...maskedWords(args).map((word) => (/^[\w./:,=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)),
  ].join(" ");

/** Progress of a long command: a bar on a terminal, a line per step elsewhere. */
export interface Progress {
  start(label: string): void;
  /** `share` of the step is done, 0…1. */
  update(share: number, note?: string): void;
  end(note: string): void;
}

const barCells = 24;

export function progressOn(output: Output): Progress {
  let label = "";
  const draw = (text: string): unknown => {
    const room = Math.max(20, (output.columns ?? 80) - 1);
    return output.write(`\r\x1b[K${text.slice(0, room)}`);
  };
  return {
    start(name) {
      label = name;
      if (output.isTTY === true) draw(label);
      else output.write(`${label} …\n`);
    },
    update(share, note = "") {
      if (output.isTTY !== true) return;
      const done = Math.round(Math.max(0, Math.min(1, share)) * barCells);
      draw(`${"█".repeat(done)}${"░".repeat(barCells - done)} ${label} ${note}`);
    },
    end(note) {
      if (output.isTTY === true) draw(`${label}: ${note}\n`);
      else output.write(`${label}: ${note}\n`);
    },
  };
}
