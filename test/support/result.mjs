import assert from "node:assert/strict";

/** Asserts what calls were given: a wrong, lost or doubled result fails the run at once, and no second run forgives it. */
export function assertResult(actual, expected, message) {
  try {
    assert.deepEqual(actual, expected, message);
  } catch (error) {
    throw Object.assign(error, { code: "WRONG_RESULT" });
  }
}
