// A machine that sleeps, or whose processes are all frozen, stands still: no process of the proof runs meanwhile, and
// afterwards every timer that fell due fires at once. That is not a broken promise of what is under test.

const tickMs = 100;
/** A gap this long is a standstill, and not a busy machine. */
const standstillMs = 1000;

let lastTickMs = performance.now();
let stoodMs = 0;
let times = 0;
/** When the last standstill was over. */
let overAtMs = -Infinity;

setInterval(look, tickMs).unref();

function look() {
  const nowMs = performance.now();
  const gapMs = nowMs - lastTickMs - tickMs;
  lastTickMs = nowMs;
  if (gapMs < standstillMs) return;
  stoodMs += gapMs;
  times++;
  overAtMs = nowMs;
}

/** How often, and for how long in all; and when the last one was over, by `performance.now()`. */
export function standstills() {
  look();
  return { times, stoodMs, overAtMs };
}

/** Calls back after `ms` in which the machine ran. Gives the function that cancels it. */
export function afterRunning(ms, callback) {
  const begun = performance.now() - standstills().stoodMs;
  let timer = setTimeout(fire, ms);
  function fire() {
    const leftMs = ms - (performance.now() - standstills().stoodMs - begun);
    if (leftMs <= 1) callback();
    else timer = setTimeout(fire, leftMs);
  }
  return () => clearTimeout(timer);
}
