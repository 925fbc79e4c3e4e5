export { calibrate, type CalibrateOptions, type Calibration, type CalibrationRow } from "./calibrate.ts";
export { fitLine, type CostModel, type MeasuredCost } from "./cost-line.ts";
export { recommend, type RecommendOptions, type Recommendation, type RecommendReason } from "./recommend.ts";
export { manualClock, type ManualClock } from "./manual-clock.ts";
export { virtualClock, type VirtualClock } from "./virtual-clock.ts";
