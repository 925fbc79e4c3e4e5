import { setTimeout as sleep } from "node:timers/promises";

/** Now and then one of `disturbances`, drawn by its name from `names`, until it is over; counts them in `faults`. */
export async function disturb({ draw, disturbances, names = Object.keys(disturbances), faults, isOver }) {
  while (!isOver()) {
    await sleep(draw.between(500, 4000));
    if (isOver()) return;
    const what = draw.of(names);
    faults[what] = (faults[what] ?? 0) + 1;
    await disturbances[what]();
  }
}
