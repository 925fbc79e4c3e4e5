export { nearestOf } from "./checks.ts";
export { describe } from "./describe.ts";
