/**
 * @import { Playback, Ride } from "./playback.js"
 * @typedef {{ x: number, y: number, alpha: number }} Dot where a call is drawn now
 * @typedef {{ canvas: HTMLCanvasElement, playback: Playback, slots: number, size: number, dots: Map<number, Dot>, first: number, firstTrip: number, ends: number[][], ended: number[] }} Lane
 */

/** After its end a call is still on its way out for so many real milliseconds. */
const leavingMs = 650;
const gap = 1.5;

/** @returns {Lane} */
export const laneOn = (
  /** @type {HTMLCanvasElement} */ canvas,
  /** @type {Playback} */ playback,
  /** @type {{ slots: number, size: number }} */ { slots, size },
) => ({
  canvas,
  playback,
  slots,
  size,
  dots: new Map(),
  first: 0,
  firstTrip: 0,
  // Answered, and not: when, and how many so far.
  ends: [true, false].map((isOk) =>
    playback.rides.flatMap(({ end, endMs }) => ((end === "ok") === isOk ? endMs : [])).sort((a, b) => a - b),
  ),
  ended: [0, 0],
});

/**
 * Virtual milliseconds in a real second: so slow that the eye follows a run, and so few calls at once. A surge has no time
 * for that.
 * @param {number} aloneMs run time of one item
 * @param {number} perS calls that arrive a second
 */
export const paceOf = (aloneMs, perS, isSurge = false) =>
  Math.max(Math.min(4 * aloneMs, 50_000 / perS), isSurge ? 120 : 0);

/**
 * Draws one moment of a lane: calls come from the left, wait, share a run, and leave on the right.
 * @param {Lane} lane
 * @param {number} elapsedMs virtual, since the lane began
 * @param {number} frameS real seconds since the last frame; 0 puts every call at its place at once
 * @param {number} pace virtual milliseconds in a real second
 * @returns {{ waiting: number, answered: number, lost: number }} calls: now, and so far
 */
export function drawFlow(lane, elapsedMs, frameS, pace) {
  const { canvas, playback, dots } = lane;
  const nowMs = playback.fromMs + elapsedMs;
  const { context, width, height, ink, muted, bad } = paper(canvas);
  const { rides, trips } = playback;
  const outMs = (leavingMs * pace) / 1000;
  // All before these are gone.
  while (
    lane.first < rides.length &&
    Math.max(rides[lane.first].endMs, tripEnd(playback, rides[lane.first])) + outMs < nowMs
  )
    dots.delete(lane.first++);
  while (lane.firstTrip < trips.length && trips[lane.firstTrip].atMs + trips[lane.firstTrip].runMs + outMs < nowMs)
    lane.firstTrip++;

  const plan = planOf(lane, width, height);
  drawSlots(context, lane, plan, nowMs, { ink, muted });

  /** @type {number[]} */
  const waiting = [];
  for (let at = lane.first; at < rides.length && rides[at].atMs <= nowMs; at++) {
    const ride = rides[at];
    if (ride.startMs > nowMs && ride.endMs > nowMs) waiting.push(at);
  }
  // Those of one run stand together, the next run in front.
  waiting.sort((a, b) => rides[a].startMs - rides[b].startMs || a - b);
  const placed = new Map(waiting.map((ride, rank) => [ride, rank]));
  const ease = frameS === 0 ? 1 : 1 - Math.exp(-9 * frameS);
  const { radius, rows, columns, queueX, middle } = plan;
  const step = 2 * radius + gap;

  for (let at = lane.first; at < rides.length && rides[at].atMs <= nowMs; at++) {
    const ride = rides[at];
    let dot = dots.get(at);
    if (dot === undefined) dots.set(at, (dot = { x: -radius, y: middle + jitter(at) * height * 0.3, alpha: 1 }));
    let [x, y, alpha] = [0, 0, 1];
    let size = radius;
    let colour = ride.isFlood ? muted : ink;
    const hasLeft = ride.endMs <= nowMs;
    const rank = placed.get(at);
    if (rank !== undefined) {
      const column = Math.floor(rank / rows);
      if (column >= columns) continue;
      x = queueX - column * step;
      y = middle + ((rank % rows) - (Math.min(rows, waiting.length - column * rows) - 1) / 2) * step;
      alpha = 0.75;
    } else if (hasLeft && ride.end !== "ok") {
      x = dot.x;
      y = height + 2 * radius;
      colour = bad;
      alpha = Math.max(0, 1 - (nowMs - ride.endMs) / outMs);
    } else if (hasLeft) {
      x = width + 6 * radius;
      y = dot.y;
      alpha = Math.max(0, 1 - (nowMs - ride.endMs) / outMs);
    } else {
      [x, y] = seatOf(plan, trips[ride.run], at);
      size = Math.min(radius, plan.seat / 2 - 0.3);
    }
    dot.x += (x - dot.x) * (hasLeft ? Math.min(1, 0.45 * ease) : ease);
    dot.y += (y - dot.y) * (hasLeft && ride.end !== "ok" ? 0.5 * ease : ease);
    dot.alpha = alpha;
    context.globalAlpha = alpha;
    context.fillStyle = colour;
    // Long texts are longer.
    const stretch = Math.min(9, Math.max(0, Math.log2(ride.weight) - 3)) * size * 0.3;
    context.beginPath();
    context.roundRect(dot.x - size - stretch, dot.y - size, 2 * (size + stretch), 2 * size, size);
    context.fill();
  }
  context.globalAlpha = 1;
  const unseen = waiting.length - rows * columns;
  if (unseen > 0) {
    context.fillStyle = muted;
    context.font = "600 12px system-ui, sans-serif";
    context.textAlign = "left";
    context.fillText(`+ ${unseen.toLocaleString("en-US")}`, 4, height - 6);
  }
  const [answered, lost] = lane.ends.map((ends, kind) => {
    while (ends[lane.ended[kind]] <= nowMs) lane.ended[kind]++;
    return lane.ended[kind];
  });
  return { waiting: waiting.length, answered, lost };
}

/** @typedef {{ radius: number, rows: number, columns: number, queueX: number, middle: number, boxes: { x: number, y: number, width: number, height: number }[], perRow: number, seat: number }} Plan */

/** @returns {Plan} */
function planOf(/** @type {Lane} */ { slots, size }, /** @type {number} */ width, /** @type {number} */ height) {
  const radius = width < 500 ? 3 : 4.5;
  const step = 2 * radius + gap;
  const left = Math.round(width * 0.56);
  const across = Math.ceil(slots / 4);
  const down = Math.ceil(slots / across);
  const boxHeight = Math.min(height - 16, (height - 12 - 6 * (down - 1)) / down);
  const widest = (width * 0.86 - left - 6 * (across - 1)) / across;
  // A box holds a full batch: its seats are smaller where there are many.
  let seat = step + 1;
  const rowsOf = () => Math.max(1, Math.floor((boxHeight - 6) / seat));
  const needed = () => Math.ceil(size / rowsOf()) * seat + 10;
  while (seat > 2 && needed() > widest) seat -= 0.25;
  const boxWidth = Math.min(widest, Math.max(needed(), 34));
  const top = (height - down * boxHeight - 6 * (down - 1)) / 2;
  const boxes = Array.from({ length: slots }, (_, slot) => ({
    x: left + Math.floor(slot / down) * (boxWidth + 6),
    y: top + (slot % down) * (boxHeight + 6),
    width: boxWidth,
    height: boxHeight,
  }));
  return {
    radius,
    rows: Math.max(1, Math.floor((height - 14) / step)),
    columns: Math.max(1, Math.floor((left - width * 0.08) / step)),
    queueX: left - 12 - radius,
    middle: height / 2,
    boxes,
    perRow: rowsOf(),
    seat,
  };
}

function seatOf(
  /** @type {Plan} */ { boxes, perRow, seat },
  /** @type {import("./playback.js").Trip} */ { slot, rides },
  /** @type {number} */ ride,
) {
  const box = boxes[slot];
  const index = rides.indexOf(ride);
  const column = Math.floor(index / perRow);
  const inColumn = Math.min(perRow, rides.length - column * perRow);
  return [
    box.x + 5 + seat / 2 + column * seat,
    box.y + box.height / 2 + ((index % perRow) - (inColumn - 1) / 2) * seat,
  ];
}

function drawSlots(
  /** @type {CanvasRenderingContext2D} */ context,
  /** @type {Lane} */ { playback: { trips }, firstTrip },
  /** @type {Plan} */ { boxes },
  /** @type {number} */ nowMs,
  /** @type {{ ink: string, muted: string }} */ { ink, muted },
) {
  context.lineWidth = 1.5;
  for (const { x, y, width, height } of boxes) {
    context.strokeStyle = muted;
    context.globalAlpha = 0.35;
    context.beginPath();
    context.roundRect(x, y, width, height, 8);
    context.stroke();
  }
  for (let at = firstTrip; at < trips.length && trips[at].atMs <= nowMs; at++) {
    const { atMs, runMs, slot } = trips[at];
    if (atMs + runMs < nowMs) continue;
    const { x, y, width, height } = boxes[slot];
    context.save();
    context.beginPath();
    context.roundRect(x, y, width, height, 8);
    context.clip();
    context.fillStyle = ink;
    context.globalAlpha = 0.16;
    context.fillRect(x, y, (width * (nowMs - atMs)) / runMs, height);
    context.restore();
    context.globalAlpha = 0.9;
    context.strokeStyle = ink;
    context.beginPath();
    context.roundRect(x, y, width, height, 8);
    context.stroke();
  }
  context.globalAlpha = 1;
}

/**
 * A lane as a still picture: every call is a line from its arrival to its answer, thin while it waits; every run is a box.
 * @param {Lane} lane
 * @param {number} spanMs
 */
export function drawTimeline({ canvas, playback: { rides, trips, fromMs } }, spanMs) {
  const { context, width, height, ink, muted, bad } = paper(canvas);
  const x = (/** @type {number} */ atMs) => ((atMs - fromMs) / spanMs) * width;
  const seen = rides
    .map((ride, at) => ({ ...ride, at }))
    .filter(({ atMs, endMs }) => endMs >= fromMs && atMs < fromMs + spanMs);
  const row = Math.max(1.2, Math.min(7, (height - 8) / Math.max(1, seen.length)));
  const most = Math.floor((height - 8) / row);
  const rowOf = new Map(seen.slice(0, most).map(({ at }, index) => [at, 4 + row * index]));
  const runEnd = (/** @type {Ride} */ ride) =>
    ride.run < 0 ? ride.endMs : Math.min(ride.endMs, trips[ride.run].atMs + trips[ride.run].runMs);
  for (const { at, ...ride } of seen.slice(0, most)) {
    const y = rowOf.get(at) ?? 0;
    const colour = ride.end !== "ok" ? bad : ride.isFlood ? muted : ink;
    context.fillStyle = colour;
    context.globalAlpha = 0.45;
    const waitsUntilMs = Math.min(ride.startMs, ride.endMs);
    context.fillRect(
      x(ride.atMs),
      y + row * 0.3,
      Math.max(0.5, x(waitsUntilMs) - x(ride.atMs)),
      Math.max(0.7, row * 0.25),
    );
    context.globalAlpha = 1;
    if (ride.startMs < Infinity)
      context.fillRect(x(ride.startMs), y, Math.max(1, x(runEnd(ride)) - x(ride.startMs) - 1), Math.max(1, row - 0.6));
  }
  context.globalAlpha = 1;
  return seen.length;
}

const tripEnd = (/** @type {Playback} */ { trips }, /** @type {Ride} */ { run }) =>
  run < 0 ? 0 : trips[run].atMs + trips[run].runMs;

/** Between -1 and 1, the same for the same call. */
const jitter = (/** @type {number} */ n) => ((n * 2654435761) >>> 0) / 2 ** 31 - 1;

/** An empty canvas as sharp as the screen, and its colours: those of the element's style. */
function paper(/** @type {HTMLCanvasElement} */ canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const scale = Math.min(3, globalThis.devicePixelRatio || 1);
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  const style = getComputedStyle(canvas);
  return { context, width, height, ink: style.color, muted: style.outlineColor, bad: style.textDecorationColor };
}
