export { PassCost, type PassCosts } from "./pass-cost.ts";
export { planPasses, type PassLimits } from "./plan-passes.ts";
export { runInPasses, type PassOptions } from "./run-in-passes.ts";
export { measurePasses, type MeasurePassesOptions } from "./measure-passes.ts";
export { selfTest, type SelfTest, type SelfTestOptions } from "./self-test.ts";
