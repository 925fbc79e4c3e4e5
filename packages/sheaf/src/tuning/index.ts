export { calibrate, type CalibrateOptions, type Calibration } from "./calibrate.ts";
export { recommend, type RecommendOptions, type Recommendation } from "./recommend.ts";
export { simulate } from "./simulate.ts";
export type { SimulationOptions } from "./simulation-options.ts";
export type { SimulationResult } from "./simulation-result.ts";
export { recordCalls, type RecordOptions } from "./record/record-calls.ts";
