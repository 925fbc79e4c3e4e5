import type { AssertionOutcome } from "./assertion.ts";
import type { CommandStreams } from "../../shared/terminal.ts";
import { comparisonBasis, comparisons } from "./comparison.ts";
import { configurationNames, configurations, type ConfigurationName } from "../simulate/configurations.ts";
import { machine } from "./machine.ts";
import type { LoadResult } from "../result.ts";
import { resultNotes, resultTable } from "./result-table.ts";
import { figures, shownCommand, shownMs, textTable } from "../../shared/terminal.ts";

/** The options of `sheaf bench` that its output shows or follows; times in milliseconds. */
export interface BenchOutputOptions {
  readonly rate: number;
  readonly duration: number;
  readonly warmUp: number;
  readonly seed: number;
  readonly compare?: readonly ConfigurationName[];
  readonly report?: string;
  readonly svg?: string;
  readonly json?: true;
}

/** Results where they belong: a table or JSON on stdout, a report and pictures where asked for. */
export async function publishBench(
  options: BenchOutputOptions,
  args: readonly string[],
  results: readonly LoadResult[],
  outcomes: readonly AssertionOutcome[],
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
  if (options.report === undefined && options.svg === undefined) return;

  // Drawing pulls in a library of some size: only where a report is asked for.
  const [{ writeReport }, { loadCharts, loadSections }] = await Promise.all([
    import("../report/write.ts"),
    import("../report/load-charts.ts"),
  ]);
  const page = {
    title: "Load report",
    verdicts,
    notes: [comparisonBasis, ...notes],
    facts: factsOf(options, command, results),
    sections: [...loadSections(results), { title: "All patterns", charts: loadCharts(results) }],
  };
  const files = await writeReport({ html: options.report, svg: options.svg }, page);
  stderr.write(`Wrote ${files.join(", ")}\n`);
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
    ...compared.map((name): [string, string] => [name, `sheaf serve ${configurations[name].join(" ")}`]),
  ];
}
