// Requests to the worker in workerd, one after another: `ask(path)` resolves with the reply's JSON.
import { equal, numbers } from "./behaviours.mjs";

const doubled = numbers(50).map((item) => 2 * item);

export const behavioursOf = (ask) => ({
  async "a batcher per request: five requests one after another and five at once"() {
    for (const _ of numbers(5)) equal((await ask("own")).results, doubled);
    for (const { results } of await Promise.all(numbers(5).map(() => ask("own")))) equal(results, doubled);
  },
  async "a batcher at module scope: five requests one after another share batches within each"() {
    for (const _ of numbers(5)) {
      const { results, sizes } = await ask("shared");
      equal(results, doubled);
      // Three full batches hold them; on a crowded machine the policy may split the last.
      equal(sizes.length <= 5, true);
    }
    equal((await ask("list")).results, doubled);
  },
  async "a batcher at module scope: a timer that an ended request left behind holds nobody up"() {
    equal((await ask("pair")).results, [2, 4]);
    for (const _ of numbers(2)) equal((await ask("alone")).results, [6]);
  },
  async "a batcher at module scope: timeouts work in each request"() {
    for (const _ of numbers(2)) {
      equal((await ask("late")).code, "TIMEOUT");
      equal((await ask("soon")).results, ["soon"]);
    }
  },
});
