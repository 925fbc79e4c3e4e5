import { Session } from "node:inspector/promises";
import type { TestContext } from "node:test";
import { atEnd } from "./at-end.js";

/** A count of what this thread runs: work that does not depend on the machine's speed. */
export interface Executions {
  /** How often the busiest function, loop or branch of the built package ran since the last look, and its place. */
  busiest(): Promise<{ readonly count: number; readonly place: string }>;
}

/** Counts with V8's precise coverage until the test ends. Code that ran before is counted by function only. */
export async function countingExecutions(t: TestContext): Promise<Executions> {
  const session = new Session();
  session.connect();
  atEnd(t, async () => session.disconnect());
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  return {
    async busiest() {
      const { result } = await session.post("Profiler.takePreciseCoverage");
      let busiest = { count: 0, place: "" };
      for (const { url, functions } of result)
        if (url.includes("/sheaf-server/dist/"))
          for (const { functionName, ranges } of functions)
            for (const { count } of ranges)
              if (count > busiest.count) busiest = { count, place: `${functionName} of ${url}` };
      return busiest;
    },
  };
}
