import type { Chart } from "./chart.ts";

export interface ReportPage {
  readonly title: string;
  /** Sentences above the pictures: what came out of it. */
  readonly verdicts: readonly string[];
  /** What was run, where: label and value, shown as they are. */
  readonly facts: readonly (readonly [label: string, value: string])[];
  readonly tables: readonly { readonly title: string; readonly rows: readonly (readonly string[])[] }[];
  /** Sentences below the tables: what to keep in mind. */
  readonly notes?: readonly string[] | undefined;
  readonly charts: readonly { readonly chart: Chart; readonly svg: string }[];
}

/** One file that holds everything it shows: no script, no request, opens offline and prints. */
export function reportHtml({ title, verdicts, facts, tables, notes = [], charts }: ReportPage): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; color: #1a1a1a; background: white; margin: 2rem auto; max-width: 64rem; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.15rem; margin: 2.2rem 0 0.2rem } figure { margin: 0; overflow-x: auto }
figure svg { max-width: 100%; height: auto } figcaption, dt, .note { color: #555 } .note { font-size: 0.85rem; overflow-wrap: anywhere }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.1rem 1rem } dd { margin: 0; overflow-wrap: anywhere }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.85rem } .wide { overflow-x: auto }
th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap }
.text { text-align: left }
@media print { h2, figure { break-inside: avoid } }
</style>
<h1>${escaped(title)}</h1>
${verdicts.map((verdict) => `<p>${escaped(verdict)}</p>`).join("\n")}
<dl>
${facts.map(([label, value]) => `<dt>${escaped(label)}</dt><dd>${escaped(value)}</dd>`).join("\n")}
</dl>
${tables.map(tableHtml).join("\n")}
${notes.map((note) => `<p class="note">${escaped(note)}</p>`).join("\n")}
${charts.map(chartHtml).join("\n")}
</html>
`;
}

const startsAsFigure = /^[\d.,–-]/;

function tableHtml({ title, rows: [head = [], ...rows] }: ReportPage["tables"][number]): string {
  const isText = head.map((_, column) => column === 0 || rows.some((row) => !startsAsFigure.test(row[column] ?? "")));
  const cells = (row: readonly string[], tag: string): string =>
    row.map((cell, column) => `<${tag}${isText[column] ? ' class="text"' : ""}>${escaped(cell)}</${tag}>`).join("");
  const body = rows.map((row) => `<tr>${cells(row, "td")}</tr>`).join("\n");
  return `<h2>${escaped(title)}</h2>
<div class="wide"><table><thead><tr>${cells(head, "th")}</tr></thead><tbody>
${body}
</tbody></table></div>`;
}

function chartHtml({ chart, svg }: ReportPage["charts"][number]): string {
  return `<h2>${escaped(chart.title)}</h2>
<figure><figcaption>${escaped(chart.reading)}</figcaption>
${svg}</figure>`;
}

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text: string): string => text.replace(/[&<>"]/g, (character) => entities[character]!);
