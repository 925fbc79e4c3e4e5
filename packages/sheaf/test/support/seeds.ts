const isProof = process.env["SHEAF_SEEDS"] === "all";

/** What `SHEAF_SEEDS=all npm test` takes, and the little that `npm test` has time for. */
export const inProof = <T>(proof: T, test: T): T => (isProof ? proof : test);

/** The seeds 1 to `last` in the proof, and the first `test` of them otherwise. */
export const seedsTo = (last: number, test = 1): number[] =>
  Array.from({ length: inProof(last, test) }, (_, index) => index + 1);
