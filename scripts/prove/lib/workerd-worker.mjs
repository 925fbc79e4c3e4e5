// The worker that `npm run prove -- runtimes` runs in Cloudflare's workerd. Each path is one request: /core and /http
// hold the whole build to its behaviours, the others use a batcher as a worker does.
import * as http from "../../../packages/sheaf/lib/adapters/http.js";
import * as sheaf from "../../../packages/sheaf/lib/index.js";
import { outcomesOf, numbers, sleep } from "./behaviours.mjs";
import { behavioursOf as coreBehaviours } from "./core-behaviours.mjs";
import { behavioursOf as httpBehaviours } from "./http-behaviours.mjs";

const { createBatcher, fixedWindow } = sheaf;
const sizes = [];
/** As a service would: the batch function waits for I/O of the request that runs it. */
const slowDouble = async (items) => {
  sizes.push(items.length);
  await sleep(5);
  return items.map((item) => 2 * item);
};
const atModuleScope = createBatcher(slowDouble, { maxBatchSize: 20 });
const held = createBatcher(slowDouble, { policy: fixedWindow(), maxBatchSize: 2, maxWaitMs: 300 });
const timed = createBatcher((items) => (items[0] === "never" ? new Promise(() => {}) : items), {
  concurrency: 100,
  timeoutMs: 50,
});

const routes = {
  core: () => outcomesOf(coreBehaviours(sheaf)),
  http: () => outcomesOf(httpBehaviours(http)),
  async shared() {
    sizes.length = 0;
    return { results: await Promise.all(numbers(50).map((item) => atModuleScope(item))), sizes };
  },
  async own() {
    const batcher = createBatcher(slowDouble, { maxBatchSize: 20 });
    return { results: await Promise.all(numbers(50).map((item) => batcher(item))) };
  },
  async list() {
    return { results: await atModuleScope.many(numbers(50)) };
  },
  /** Leaves a timer behind: the first call of a pair is held, the second fills the batch. */
  async pair() {
    const first = held(1);
    await sleep(20);
    return { results: await Promise.all([first, held(2)]) };
  },
  async alone() {
    return { results: [await held(3)] };
  },
  async late() {
    return { code: await timed("never").then(() => "no error", ({ code }) => code) }; // prettier-ignore
  },
  async soon() {
    return { results: [await timed("soon")] };
  },
};

export default {
  async fetch(request) {
    return Response.json(await routes[new URL(request.url).pathname.slice(1)]());
  },
};
