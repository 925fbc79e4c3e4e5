import { CommandFailure } from "../../shared/failure.ts";
import type { Chart, ChartSize } from "./chart.ts";

// No dependencies of a server that only serves models: together they bring 66 packages.
const drawnWith = ["vega", "vega-lite"] as const;

/** @throws {CommandFailure} that says how to install the packages that draw charts, where they are missing. */
export function checkDrawable(): void {
  for (const name of drawnWith) {
    try {
      import.meta.resolve(name);
    } catch {
      const packages = drawnWith.map((needed) => `${needed}@5`).join(" ");
      throw new CommandFailure(`${name} is not installed. Reports need it for their charts: npm install ${packages}`);
    }
  }
}

/** Draws charts as SVG text, in the order given. vega is loaded here and nowhere else: it takes a fifth of a second. */
export async function renderCharts(charts: readonly Chart[], size: ChartSize): Promise<string[]> {
  const [vega, { compile }] = await Promise.all([import("vega"), import("vega-lite")]);
  const drawn: string[] = [];
  for (const { spec } of charts) {
    const view = new vega.View(vega.parse(compile(spec(size)).spec), { renderer: "none" });
    drawn.push(await view.toSVG());
    view.finalize();
  }
  return drawn;
}
