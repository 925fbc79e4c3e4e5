export { compareResults, type OutputDifferences } from "../models/compare-results.ts";
export { largestSteadyRate } from "../models/self-test.ts";
