// The wording of errors, for sheaf-server only: one text in both packages. Not public; it may change in any release.
export { editsBetween, nearestOf } from "./shared/checks.ts";
export { gainAtStart } from "./core/observe/verdict.ts";
export { describe } from "./shared/describe.ts";
