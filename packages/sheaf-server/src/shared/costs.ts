/**
 * What a request may cost, beside the settings: bytes held, bytes of its reply, and time on the thread that reads requests and
 * writes replies. docs/reference/costs.md has the same as a table.
 */
export const costs = {
  /** Bytes of a body, and of a piece of a reply, that take a turn on the thread: a few milliseconds of JSON. */
  largeBytes: 262_144,
  /** Large bodies that may wait for their turn, of one account and of all. */
  largeBodiesWaiting: 16,
  largeBodiesWaitingInAll: 64,
  /** After a turn longer than this, the thread is left to other open requests for so many times its length. */
  shortTurnMs: 10,
  restAfterTurn: 2,
} as const;
