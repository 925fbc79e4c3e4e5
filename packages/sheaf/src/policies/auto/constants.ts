// Every number in auto's rules, by rule, with the measurement that chose it. "½ a %, 2 b %": half or double of it makes the mean latency that
// much longer over the 184 workloads of `npm run bench -- scheduling`, "at worst" in one of them. Numbers "for noise" are
// held by `npm run prove -- scheduling`: those workloads have none. A bundler inlines the constants of a file without imports.

// How fast callers come (arrival-rate.ts).
/** Until the first batches say how long a run is. ½ 0.2 %, 2 0.5 %. */
export const firstWindowMs = 100;
/** A rate over less than two runs follows single batches. ½ −0.1 %, 2 0.2 % (at worst 7 and 16 %). */
export const rateSpanRuns = 2;
/** That run holds the mean batch of about the last 33. ½ 0, 2 0.1 %. */
export const meanBatchGain = 0.03;
/** Fewer would scatter by more than 1 / √16 = a quarter. ½ 0, 2 0.2 % (at worst 6 and 50 %: slow to see a burst). */
export const arrivalsSpanned = 16;
/** A bound: with fewer than three calls a second there is nothing to decide. */
export const longestWindowMs = 5000;
/** A window follows a changed run time within ten batches. 2 0.1 %; never longer 2.4 %. */
export const windowStepUp = 1.2;
/** ½ −0.2 %, at worst 25 %; never shorter 2.4 %. */
export const windowStepDown = 0.8;
/** Long, so that one clump does not pass for the rate. ½ and 2: 0. */
export const gapsAveraged = 128;
/** `longestWindowMs` ÷ `arrivalsSpanned`: one silent night must not blind it to the morning. */
export const longestGapMs = 312;
/** The first arrival has been watched for no time at all. ½ 0.1 %, 2 0. */
export const minWatched = 0.05;

// Whether something is about to happen (linger.ts).
/** A bound: from 1 µs, the resolution of clocks, to 8 s, which no hold reaches. */
export const octaves = 24;
/** A few dozen in each octave that counts, and forgotten within a second under load. ½ and 2: 0. */
export const eventsRemembered = 512;

// Who is worth waiting for: pacing and linger.
/** A crowd that has shrunk is forgotten by half within 350 arrivals. ½ and 2: 0. */
export const crowdGain = 0.002;
/** The crowd comes near a whole number and never reaches it; without this, one item more would be waited for. */
export const shareSlack = 0.01;

// Size.
/** For a line there must be two sizes, and an error of it to judge it by. */
export const batchesToTrust = 4;
/** The formula goes to infinity at 1, and a rate is known to a fifth. ½ 0.1 %, 1.8 (never full) 6.5 %. */
export const busyAtMost = 0.9;
/** For noise: a small gain may be an error of the estimate, and too small batches cost throughput. ½ and 2: 0. */
export const noiseDiscount = 0.3;
/**
 * For noise: more scatter than this comes from other work on the machine. It delays long runs and those amid many requests, so
 * large batches look too slow, and no number of looks corrects that.
 */
export const crowdedNoise = 0.2;
/** For noise: of the choices of small batches recorded beside a busy neighbour, this ends half (lists) to three quarters. */
export const crowdedDiscount = 1.5;
/** One look is not enough: after a slow one a size would be avoided for a thousand batches. */
export const seenEnough = 1;
/** For noise: the more run times scatter, the more looks a size gets before it is avoided. */
export const seenPerNoise = 12;
/** Of decisions against such a size every sixteenth tries it: at most 6 % of the runs are for learning. */
export const probeEvery = 16;

// Pacing.
/** Where a slot's share of the fixed cost is that of 8 items, a batch is soon worth more than the slots it leaves free. */
export const itemsShared = 8;
/**
 * Two halves of the paced batch take at least 1.42 times the whole: s(0) is 0.42 of a straight line. With less to share (a
 * steep line, a square root, a cost that grows faster than its size), slots that are always busy fill the batches by
 * themselves, and a hold only makes all of them longer. ½ (always) 0.4 %, at worst 53 %; 2 (never) 2 %.
 */
export const halvesOverWhole = 1.42;
/** Nearly enough is enough: a hold for a third of an item never pays. */
export const itemsShort = 0.3;
/** Slots a tenth free, or the next items would find none. ½ 0.5 %, 2 1 %. */
export const pacedBusy = 0.9;
/** While the cost is still being learned, the paced size is computed at every batch … */
export const learningBatches = 64;
/** … later at every eighth, to save its time. ½ and 2: 0. */
export const refreshBatches = 8;
/** … or once the arrival rate has moved so far. ½ and 2: 0, at worst 4 %. */
export const refreshRateShare = 0.05;
/** At 4 s(0) / slope items a batch has 80 % of the possible gain. ½ and 2: 0. */
export const maxFixedShares = 4;
/** A bound, where nothing else is one. */
export const largestPacedSize = 65_536;
/** The wait for a slot goes to infinity at 1. ½ 1.9 %; without it 1.9 %. */
export const pacedBusyAtMost = 0.98;
/**
 * Allen and Cunneen have 2W here. With few slots that overstates the wait, because an item that finds every slot busy helps to
 * fill a batch. ½ 0.2 %, 2 0.
 */
export const slotWaitDivisor = 16;

// Linger.
/** Arrivals within 1 µs are one moment, of which a clock may see two. */
export const sameMomentMs = 0.001;
/** The rest of a clump comes soon or not at all. ½ 0.2 %, 2 0. */
export const clumpHoldShare = 0.25;
/** Left behind, a caller who comes back waits for a whole run: worth waiting for longer than a clump. ½ −0.1 %, 2 0. */
export const returnHoldShare = 0.5;
/** Expected arrivals · s(0) / W must be over twice the items that wait. ½ 0, 2 0.5 %; p99 0.6 and 0.9 %. */
export const arrivalsToPay = 2;
/** A shorter look ahead than s(0) / 50 is not worth a timer. ½ 0, 2 −0.1 %. */
export const lookAheadDivisor = 50;
/**
 * Where one run instead of two saves less than a sixth, the few who come late lose more than the others win. ½ (wait always)
 * −0.2 %, but p99 0.8 %; 2 (never) 1.3 %, at worst 80 %.
 */
export const apartOverTogether = 1.2;
/** Of all who come, so few are callers who come back that the others are a clump. ½ and 2: 0. */
export const fewReturning = 0.3;
/**
 * A clump that meets idle slots may be cut in fewer pieces than slots, to leave some for the next clump. Callers who come
 * back are all there are: a share of them is enough. ½ 0.1 %, p99 0.5 %; 2 0.
 */
export const clumpPieceShares = 2;
/**
 * At the end of an octave the sum of a moment and a span falls short of it by rounding: without this the hold would end there,
 * as if no more calls were expected.
 */
export const roundingMs = 0.0005;

// Overlap.
/** Over about the last ten batches. */
export const overlapGain = 0.1;
/** In an open loop the most between two batches is well below the most of all: 0.5 to 0.8 of it with Poisson arrivals. */
export const steadyCrowd = 0.9;

// Deadline.
/** Arrivals are known to about a twentieth, and a rate that eager dispatch serves must not be held. */
export const eagerMargin = 0.97;
/** Over about the last five looks: a rate over two runs scatters by more than the margin. */
export const lookGain = 0.2;
/** Close to the highest rate that eager dispatch serves in time, batches that are fast on average make calls late. */
export const nearMargin = 1.1;
/** A smaller gain is within the error of a learned cost: without a fixed part there is none. */
export const wholeOverPart = 0.99;
/** The share that may be late. */
export const eagerLateAtMost = 0.01;
/** A look takes up to 0.3 ms. */
export const eagerEveryMs = 100;
/** Batches in a look, and those of them that only bring the slots out of step. */
export const eagerBatches = 400;
export const eagerSettling = 80;
export const packetsPerBatch = 16;
/** Evenly filled batches save a part of the fixed cost: below a twelfth of the run they are not worth a hold. */
export const leastShared = 0.08;
/** Less in hand than for a budget: a shorter batch keeps the next one from being late. 3 costs the named cases 0.7 %. */
export const deadlineDeviations = 2;
/** With a quarter more here than a slot's share, no other is worth waiting for. 1 costs the case of 16 slots 21 %; without it callers who come back are held for their deadlines. */
export const sharesHeld = 1.25;
/** A deadline of four full runs and more is met by eager dispatch, or by nothing: there full batches wait for slots. */
export const looseRuns = 4;

// Cores; the workloads have idle ones. These were found on a simulated machine of two, which HTTP and runs share.
/** A timer of less does not exist: a clock polls instead, which would take the cores that the hold is to save. */
export const shortestHoldMs = 1;
/** Where the fixed part takes less than this, the shortest hold would be longer by a third than what it may be at most. */
export const leastPartMs = 0.75;
/**
 * Fewer than three quarters more items do not pay for the hold of the others. ½ saves 2 % more CPU for 5 to 12 % more latency;
 * with 1 at 1,000/s half as much is saved.
 */
export const moreItems = 0.75;
/** Over about the last 20 batches. */
export const delayGain = 0.05;
/** An item that has waited for so many fixed parts is held no longer. */
export const partsWaited = 3;
/** A crowd that has gone is forgotten within 30 arrivals. */
export const recentCrowdGain = 0.2;

// Budget; `prove -- scheduling` compares it with the best fixed windows, and allows 1 % to be late.
/** A fiftieth of a run in hand: by rounding, and by the timer, a hold that uses up the whole budget ends past it. */
export const budgetRuns = 1.02;
/** Of normally distributed run times fewer than 1 % are longer than the mean by three mean deviations. */
export const budgetDeviations = 3;
