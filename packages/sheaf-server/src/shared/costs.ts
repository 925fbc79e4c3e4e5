/**
 * What a request may cost beside what the settings bound: bytes held, bytes of its reply, and time on the thread that reads requests
 * and writes replies. docs/reference/routes.md#what-a-request-may-cost says it for operators.
 */
export const costs = {
  // Before a request is admitted.
  /** Requests of one connection that may be in progress at once, for clients that send several before they read a reply. */
  requestsInProgress: 16,
  /** Requests that may wait, of one connection and of all; one more closes its connection. */
  requestsWaiting: 1000,
  requestsWaitingInAll: 10_000,
  /** Open calls per gRPC connection; the client delays further calls. */
  callsPerConnection: 1000,
  /** Pings of a gRPC connection within a second and between two calls: more come from no client that measures or keeps alive. */
  pingsPerSecond: 1000,
  /** Pieces of a body that may be of any size; of more the mean must be at least `meanPieceBytes`. */
  freePieces: 1000,
  /** Node takes 3 µs for a piece, whatever its size. */
  meanPieceBytes: 16,
  /** Bytes of a gRPC message of a method that needs no key: its messages hold a name. */
  openMessageBytes: 4096,
  /** Frames of a gRPC message that cost nothing extra. Clients send a message in frames of 16 KiB. */
  freeFrames: 256,

  // Reading it.
  /** Bytes of a body, and of a JSON value, that take a turn on the thread: a few milliseconds. */
  largeBytes: 262_144,
  /** Large bodies that may wait for their turn, of one account and of all. */
  largeBodiesWaiting: 16,
  largeBodiesWaitingInAll: 64,
  /**
   * After a turn longer than `shortTurnMs`, no large turn starts for `restAfterTurn` times its length while other requests are open.
   * Packing the input for a worker, and unpacking and checking the result, take about as long again as reading it.
   */
  shortTurnMs: 10,
  restAfterTurn: 4,
  /** A turn counts as no longer than this: the process may have been stopped in it. */
  longestTurnMs: 1000,
  /** Levels of arrays and objects in JSON. More would overflow the stack of code that copies or writes the value. */
  jsonDepth: 500,
  /** Object keys, and arrays and objects, in JSON. Each costs JSON.parse a microsecond. */
  jsonKeys: 100_000,
  jsonArrays: 1_000_000,
  /** Tensors and outputs of a request of /v2, and axes of each. */
  tensorAxes: 256,

  // Its reply.
  /** Time for a client to read it. */
  replyMs: 120_000,
  /** Bytes, at most, of a piece of a reply, which has a turn: numbers of float32 are written in two milliseconds. */
  pieceBytes: 1_048_576,
  /** Characters of an id of /v2, which comes back. */
  idLength: 128,
  /** Requests of one gRPC stream that run or wait; the next one is read when a reply has been taken. */
  requestsInFlightPerStream: 64,
  /** Questions in one call of gRPC's reflection, each answered by up to 30 KB; tools ask for a few. */
  reflectionsPerCall: 100,
} as const;
