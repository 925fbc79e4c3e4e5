export { selfTest, largestSteadyRate, type SelfTest } from "./self-test.ts";
export { compareResults, type OutputDifferences } from "./compare-results.ts";
