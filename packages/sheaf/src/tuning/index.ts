export { calibrate, type CalibrateOptions, type Calibration, type CalibrationRow } from "./calibrate.ts";
export { fitLine, type CostLine, type MeasuredCost, type MeasuredPoint } from "./cost-line.ts";
export { recommend, type RecommendOptions, type Recommendation, type RecommendReason } from "./recommend.ts";
export { simulate } from "./simulate.ts";
export type { SimulationOptions } from "./simulation-options.ts";
export type {
  SimulatedCall,
  SimulatedEnds,
  SimulatedLatency,
  SimulatedRun,
  SimulatedTenantFigures,
  SimulationResult,
} from "./simulation-result.ts";
export { seededRandom } from "./traffic/random.ts";
export { Clients, gaveUp, type Retries } from "./traffic/clients.ts";
export type { SimulatedTenants } from "./traffic/tenants.ts";
export { Goodput, type SimulatedGoodput } from "./goodput.ts";
export type { Arrivals, OpenArrivals } from "./traffic/arrivals.ts";
export type { DayArrivals } from "./traffic/day.ts";
export type { Scaling, SimulatedWorkers } from "./scaling/scaling.ts";
export { weightsOf, type BatchWeights, type Weights } from "./traffic/weights.ts";
export type { RunTimeNoise, SimulatedCost } from "./simulated-cost.ts";
