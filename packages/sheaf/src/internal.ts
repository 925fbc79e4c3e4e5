// For sheaf-server only. Not public; it may change in any release.
export { wrapBatcher } from "./core/wrap-batcher.ts";
export { gainAtStart } from "./core/observe/verdict.ts";
export { within } from "./core/runtime/within.ts";
export { canonicalJson } from "./shared/canonical-json.ts";
// The wording of errors: one text in both packages.
export { editsBetween, nearestOf } from "./shared/checks.ts";
export { describe } from "./shared/describe.ts";
