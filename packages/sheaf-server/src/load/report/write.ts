import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CommandFailure } from "../../shared/failure.ts";
import { sizes } from "./chart.ts";
import type { Output } from "../../shared/terminal.ts";
import { chartsOf, reportHtml, type ReportPage } from "./page.ts";
import { renderCharts } from "./render.ts";

export interface ReportFiles {
  readonly report?: string | undefined;
  /** Folder for one SVG a chart. */
  readonly svg?: string | undefined;
}

/**
 * Draws the charts and writes the files that were asked for, into folders that `prepareReport` made. `output` gets the names.
 * @throws {CommandFailure} where a file cannot be written.
 */
export async function writeReport(
  { report, svg }: ReportFiles,
  pageOf: () => ReportPage,
  output: Output,
): Promise<void> {
  if (report === undefined && svg === undefined) return;
  const page = pageOf();
  const charts = chartsOf(page);
  const wide = await renderCharts(charts, sizes.wide);
  const files: [path: string, text: string][] = [];
  if (report !== undefined) {
    const narrow = await renderCharts(charts, sizes.narrow);
    const drawn = new Map(charts.map((chart, i) => [chart, { wide: wide[i]!, narrow: narrow[i]! }]));
    files.push([report, reportHtml(page, drawn)]);
  }
  if (svg !== undefined)
    files.push(...charts.map(({ name }, i): [string, string] => [join(svg, `${name}.svg`), wide[i]!]));
  for (const [path, text] of files) {
    try {
      await writeFile(path, text);
    } catch (error) {
      throw new CommandFailure(`${path} cannot be written: ${(error as Error).message}`);
    }
  }
  output.write(`Wrote ${files.map(([path]) => path).join(", ")}\n`);
}
