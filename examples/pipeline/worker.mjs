// The middle of the pipeline: takes 1 ms · ln(n + 1) for n numbers, and squares them.
import { setTimeout as sleep } from "node:timers/promises";
import { defineWorker } from "sheaf/node";

export default defineWorker({
  async run(numbers) {
    await sleep(Math.log(numbers.length + 1));
    return numbers.map((number) => number * number);
  },
});
