import { onDark, type Chart } from "./chart.ts";

/** A part of a report: the findings, then their basis. */
export interface ReportSection {
  readonly title: string;
  /** The findings; the first is the answer. */
  readonly sentences?: readonly string[] | undefined;
  /** Rows of text, the head first. */
  readonly rows?: readonly (readonly string[])[] | undefined;
  readonly charts?: readonly Chart[] | undefined;
}

export interface ReportPage {
  readonly title: string;
  readonly verdicts: readonly string[];
  readonly sections: readonly ReportSection[];
  readonly notes?: readonly string[] | undefined;
  /** The commands and the machine: label and value, shown as they are. */
  readonly facts: readonly (readonly [label: string, value: string])[];
}

/** A chart as SVG text, for a page and for a phone. */
export interface DrawnChart {
  readonly wide: string;
  readonly narrow: string;
}

export const chartsOf = ({ sections }: ReportPage): Chart[] => sections.flatMap(({ charts = [] }) => charts);

/** One file that holds everything it shows: no script, no request, opens offline and prints. */
export function reportHtml(page: ReportPage, drawn: ReadonlyMap<Chart, DrawnChart>): string {
  const { title, verdicts, sections, notes = [], facts } = page;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${escaped(title)}</h1>
${verdicts.map((verdict) => `<p>${escaped(verdict)}</p>`).join("\n")}
${sections.map((section) => sectionHtml(section, drawn)).join("\n")}
${notes.map((note) => `<p class="note">${escaped(note)}</p>`).join("\n")}
<h2>Commands and machine</h2>
<dl>
${facts.map(([label, value]) => `<dt>${escaped(label)}</dt><dd>${escaped(value)}</dd>`).join("\n")}
</dl>
</main>
</body>
</html>
`;
}

function sectionHtml(section: ReportSection, drawn: ReadonlyMap<Chart, DrawnChart>): string {
  const { title, sentences = [], rows, charts = [] } = section;
  const [answer, ...more] = sentences;
  return [
    "<section>",
    `<h2>${escaped(title)}</h2>`,
    ...(answer === undefined ? [] : [`<p class="answer">${escaped(answer)}</p>`]),
    ...more.map((sentence) => `<p>${escaped(sentence)}</p>`),
    ...(rows === undefined ? [] : [tableHtml(title, rows)]),
    ...charts.map((chart) => chartHtml(chart, drawn.get(chart)!)),
    "</section>",
  ].join("\n");
}

const startsAsFigure = /^[\d.,–-]/;

function tableHtml(title: string, [head = [], ...rows]: readonly (readonly string[])[]): string {
  const isText = head.map((_, column) => column === 0 || rows.some((row) => !startsAsFigure.test(row[column] ?? "")));
  const cell = (text: string, column: number, tag: string): string =>
    `<${tag}${isText[column] ? ' class="text"' : ""}>${escaped(text)}</${tag}>`;
  const body = rows.map(
    ([first = "", ...rest]) =>
      `<tr><th scope="row" class="text">${escaped(first)}</th>${rest.map((text, i) => cell(text, i + 1, "td")).join("")}</tr>`,
  );
  // Wider than a phone: it can be scrolled, by keyboard too.
  return `<div class="scroll" tabindex="0" role="region" aria-label="${escaped(`Figures: ${title}`)}">
<table><thead><tr>${head.map((text, i) => cell(text, i, "th")).join("")}</tr></thead><tbody>
${body.join("\n")}
</tbody></table></div>`;
}

const chartHtml = ({ title, reading }: Chart, { wide, narrow }: DrawnChart): string =>
  `<figure><h3>${escaped(title)}</h3><figcaption>${escaped(reading)}</figcaption>
<div class="wide">${named(wide, title)}</div><div class="narrow">${named(narrow, title)}</div></figure>`;

/** The picture as one image with a name: its marks, read out one by one, would not help a listener. */
const named = (svg: string, title: string): string =>
  svg.replace(/ (?:role|aria-[\w]+)="[^"]*"/g, "").replace("<svg ", `<svg role="img" aria-label="${escaped(title)}" `);

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text: string): string => text.replace(/[&<>"]/g, (character) => entities[character]!);

const darkColours = Object.entries(onDark)
  .map(([light, dark]) => `[stroke="${light}"] { stroke: ${dark} } [fill="${light}"] { fill: ${dark} }`)
  .join("\n");

const style = `
:root { --text: #1a1a1a; --muted: #555; --line: #ddd; --page: #fff }
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; color: var(--text); background: var(--page); margin: 0 }
main { max-width: 960px; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem; line-height: 1.25 } h2 { font-size: 1.25rem; margin: 2.4rem 0 0.3rem } h3 { font-size: 1rem; margin: 1.4rem 0 0 }
p, dd { overflow-wrap: anywhere } .answer { font-size: 1.1rem; margin: 0.3rem 0 0.8rem }
figure { margin: 0 } figure svg { display: block; width: 100%; height: auto } svg > rect[fill="white"] { fill: none }
svg text { fill: var(--text) } svg .background { fill: none }
figcaption, dt, .note { color: var(--muted) } .note, figcaption { font-size: 0.9rem } .narrow { display: none }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.1rem 1rem } dd { margin: 0 }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 0.9rem } .scroll { overflow-x: auto }
th, td { padding: 0.3rem 0.6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; font-weight: 400 }
thead th { color: var(--muted) } tbody th { font-weight: 600; position: sticky; left: 0; background: var(--page) } th.text, td.text { text-align: left }
@media (max-width: 640px) {
  main { margin-top: 1rem } .wide { display: none } .narrow { display: block }
  dl { grid-template-columns: 1fr } dt { margin-top: 0.5rem } th, td { padding-inline: 0.4rem } th:first-child { padding-left: 0 }
}
@media screen and (prefers-color-scheme: dark) {
:root { --text: #e8eaed; --muted: #a8adb5; --line: #383d45; --page: #16181d }
${darkColours}
}
@media print { h2, figure { break-inside: avoid } .wide { display: block } .narrow { display: none } }
`;
