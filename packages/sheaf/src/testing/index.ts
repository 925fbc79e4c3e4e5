export { manualClock, type ManualClock } from "./manual-clock.ts";
export { virtualClock, type VirtualClock } from "./virtual-clock.ts";
