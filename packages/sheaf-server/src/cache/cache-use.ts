import type { FastifyInstance, FastifyRequest } from "fastify";

/** How many items of a request were asked for in a cache, and found there. */
export class CacheUse {
  #items = 0;
  #hits = 0;

  note(items: number, hits: number): void {
    this.#items += items;
    this.#hits += hits;
  }

  get counts(): readonly [items: number, hits: number] {
    return [this.#items, this.#hits];
  }

  /** The value of `X-Sheaf-Cache`; undefined where nothing was asked for. */
  get header(): "hit" | "partial" | "miss" | undefined {
    if (this.#items === 0) return undefined;
    if (this.#hits === 0) return "miss";
    return this.#hits === this.#items ? "hit" : "partial";
  }
}

const uses = new WeakMap<FastifyRequest, CacheUse>();

export function cacheUseOf(request: FastifyRequest): CacheUse {
  const use = uses.get(request) ?? new CacheUse();
  uses.set(request, use);
  return use;
}

/** Says in every reply to what asked the cache what came of it. */
export function sendCacheUse(app: FastifyInstance): void {
  app.addHook("onSend", (request, reply, _payload, done) => {
    const header = uses.get(request)?.header;
    if (header !== undefined) reply.header("x-sheaf-cache", header);
    done();
  });
}
