import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CommandFailure } from "../command-line.ts";
import type { Chart } from "./chart.ts";
import { reportHtml, type ReportPage } from "./page.ts";
import { renderCharts } from "./render.ts";

export interface ReportFiles {
  /** Path of the page. */
  readonly html?: string | undefined;
  /** Folder for one SVG a chart. */
  readonly svg?: string | undefined;
}

/** Draws the charts and writes what was asked for, into folders that `checkWritable` made. @throws {CommandFailure} where a file can not be written. */
export async function writeReport(
  { html, svg }: ReportFiles,
  page: Omit<ReportPage, "charts">,
  charts: readonly Chart[],
): Promise<string[]> {
  if (html === undefined && svg === undefined) return [];
  const drawn = await renderCharts(charts);
  const files: [path: string, text: string][] = [];
  if (html !== undefined) files.push([html, reportHtml({ ...page, charts: drawn })]);
  for (const { chart, svg: text } of svg === undefined ? [] : drawn)
    files.push([join(svg!, `${chart.name}.svg`), text]);
  for (const [path, text] of files) {
    try {
      await writeFile(path, text);
    } catch (error) {
      throw new CommandFailure(`${path} can not be written: ${(error as Error).message}`);
    }
  }
  return files.map(([path]) => path);
}
