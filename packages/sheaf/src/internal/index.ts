// For sheaf-server only. Not public; it may change in any release.
export { apartHandle } from "../core/contract/base-run-handle.ts";
export type { RunTime } from "../core/contract/executor.ts";
export { askRoom, checkRoom, wrapBatcher } from "../core/wrap-batcher.ts";
export { gainAtStart } from "../core/measure/verdict.ts";
export { within } from "../core/runtime/runtime.ts";
export { mapOver } from "../core/calls/map.ts";
export { AbortListeners } from "../core/queue/cancellation.ts";
// The wording of errors: one text in both packages.
export { canonicalJson } from "../shared/canonical-json.ts";
export {
  check,
  checkNames,
  checkOptions,
  checkText,
  closeChecks,
  editsBetween,
  hasMethods,
  nearestOf,
  oneOf,
  withOptions,
  type Closing,
} from "../shared/checks.ts";
export { describe } from "../shared/describe.ts";
