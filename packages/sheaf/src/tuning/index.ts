export { calibrate, type CalibrateOptions, type Calibration, type CalibrationRow } from "./calibrate.ts";
export { fitLine, type CostLine, type MeasuredCost, type MeasuredPoint } from "./cost-line.ts";
export { recommend, type RecommendOptions, type Recommendation, type RecommendReason } from "./recommend.ts";
export { manualClock, type ManualClock } from "./manual-clock.ts";
export { virtualClock, type VirtualClock } from "./virtual-clock.ts";
export { simulate, type SimulatedLatency, type SimulationOptions, type SimulationResult } from "./simulate.ts";
export { seededRandom } from "./random.ts";
export type { Arrivals } from "./arrivals.ts";
export type { RunTimeNoise, SimulatedCost } from "./simulated-cost.ts";
