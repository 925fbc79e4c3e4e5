import type { CheckedAssertion } from "./assertion.ts";
import type { CommandStreams } from "../../shared/terminal.ts";
import { comparisonBasis, comparisons } from "../comparison.ts";
import { configurationNames, configurations, type ConfigurationName } from "../configurations.ts";
import { machine } from "./machine.ts";
import type { LoadResult } from "../result.ts";
import { loadCharts, loadSections } from "../report/load-charts.ts";
import type { ReportPage } from "../report/page.ts";
import { writeReport, type ReportFiles } from "../report/write.ts";
import { resultNotes, resultTable } from "../result-table.ts";
import { figures, shownCommand, shownMs, textTable } from "../../shared/terminal.ts";

/** The options of `sheaf bench` that its output shows or follows; times in milliseconds. */
export interface BenchOutputOptions extends ReportFiles {
  readonly rate: number;
  readonly duration: number;
  readonly warmUp: number;
  readonly seed: number;
  readonly tenants?: number;
  readonly flood?: number;
  readonly compare?: readonly ConfigurationName[];
  readonly json?: true;
}

/** Results where they belong: a table or JSON on stdout, a report and pictures where asked for. */
export async function publishBench(
  options: BenchOutputOptions,
  args: readonly string[],
  results: readonly LoadResult[],
  outcomes: readonly CheckedAssertion[],
  { stdout, stderr }: CommandStreams,
): Promise<void> {
  const command = shownCommand("bench", args);
  const notes = resultNotes(results);
  const verdicts = outcomes.map(
    ({ assertion, configuration, pattern, holds, actual }) =>
      `${holds ? "holds" : "fails"}: ${assertion} (${configuration}, ${pattern}: ${actual})`,
  );
  const compared = comparisons(results);
  if (options.json) {
    const sentences = Object.fromEntries(compared);
    stdout.write(
      `${JSON.stringify({ command, machine: machine(), results, comparisons: sentences, assertions: outcomes })}\n`,
    );
  } else {
    const isCompared = results.some(({ configuration }) => configuration !== results[0]?.configuration);
    const sentences = isCompared ? [...compared].map(([pattern, sentence]) => `${pattern}: ${sentence}`) : [];
    stdout.write(`${[textTable(resultTable(results)), ...sentences, ...notes, ...verdicts].join("\n")}\n`);
  }
  const page = (): ReportPage => ({
    title: "Load report",
    verdicts,
    notes: [comparisonBasis, ...notes],
    facts: factsOf(options, command, results),
    sections: [...loadSections(results), { title: "All patterns", charts: loadCharts(results) }],
  });
  await writeReport(options, page, stderr);
}

function factsOf(options: BenchOutputOptions, command: string, results: readonly LoadResult[]): [string, string][] {
  const used = new Set(results.map(({ configuration }) => configuration));
  const compared = configurationNames.filter((name) => options.compare !== undefined && used.has(name));
  return [
    ["Command", command],
    ["Machine", machine()],
    ["Date", new Date().toISOString().slice(0, 16).replace("T", " ") + " UTC"],
    [
      "Load",
      `mean ${figures(options.rate)} requests/s, ${shownMs(options.duration)} a run after ${shownMs(options.warmUp)} of warm-up, seed ${options.seed}`,
    ],
    ...(options.tenants === undefined ? [] : [tenantsFact(options.tenants, options.flood)]),
    ...compared.map((name): [string, string] => [name, `sheaf serve ${configurations[name].join(" ")}`]),
  ];
}

function tenantsFact(tenants: number, flood: number | undefined): [string, string] {
  const more = flood === undefined ? "" : `, and one more with ${figures(flood)} requests/s`;
  return ["Tenants", `${tenants} with equal parts of the load${more}`];
}
