export { fitLine, type CostLine, type MeasuredCost, type MeasuredPoint } from "../tuning/cost-line.ts";
export { Goodput, type SimulatedGoodput } from "../tuning/goodput.ts";
export type { Scaling, SimulatedWorkers } from "../tuning/scaling/scaling.ts";
export { simulateScaled } from "../tuning/simulate.ts";
export type { RunTimeNoise, SimulatedCost } from "../tuning/simulated-cost.ts";
export type {
  SimulatedCall,
  SimulatedEnds,
  SimulatedLatency,
  SimulatedRun,
  SimulatedTenantFigures,
} from "../tuning/simulation-result.ts";
export type { Arrivals, OpenArrivals } from "../tuning/traffic/arrivals.ts";
export { Clients, gaveUp, type Retries } from "../tuning/traffic/clients.ts";
export { seededRandom } from "../tuning/traffic/random.ts";
export type { SimulatedTenants } from "../tuning/traffic/tenants.ts";
export { weightsOf, type BatchWeights, type Weights } from "../tuning/traffic/weights.ts";
