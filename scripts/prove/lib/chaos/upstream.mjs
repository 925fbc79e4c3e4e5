import { setTimeout as sleep } from "node:timers/promises";
import { embeddingApi } from "../../../../test/fakes/embedding-api.mjs";
import { isPoison, tenantOf } from "./tenants.mjs";

/** What the API does instead of answering, and in how many of a thousand requests. */
const shares = {
  429: 20,
  500: 15,
  503: 10,
  reset: 15,
  hang: 4,
  short: 10,
  long: 5,
  "an index twice": 5,
  "no JSON of it": 5,
};

/** An embeddings API that fails at random, and holds every request to be of one tenant and one model. */
export class Upstream {
  faults = {};
  #api;
  #draw;
  #ledger;
  #storm;
  /** What was done to the requests that a text was in. Texts that shared one share the set: what is left of a batch ends with the error of a part. */
  #done = new Map();
  /** When it last said 429 to a key and model. */
  #refusedAtMs = new Map();

  static async start(draw, ledger) {
    const upstream = new Upstream(draw, ledger);
    upstream.#api = await embeddingApi({
      latencyMs: 3,
      perItemMs: 0.5,
      isPoison,
      fault: (request) => upstream.#fault(request),
    });
    return upstream;
  }

  constructor(draw, ledger) {
    this.#draw = draw;
    this.#ledger = ledger;
  }

  get baseURL() {
    return this.#api.baseURL;
  }

  /** Fails every request in one way for a while. */
  async storm(what, ms) {
    this.#storm = what;
    await sleep(ms);
    this.#storm = undefined;
  }

  /** The faults that one of the texts has met so far; they are forgotten. */
  metBy(texts) {
    const met = new Set(texts.flatMap((text) => [...(this.#done.get(text) ?? [])]));
    for (const text of texts) this.#done.delete(text);
    return met;
  }

  /** Whether it has said 429 to this key and model since then: calls that only wait may end with it too. */
  hasRefusedSince(key, model, atMs) {
    return (this.#refusedAtMs.get(`Bearer ${key} ${model}`) ?? -Infinity) >= atMs;
  }

  close() {
    return this.#api.close();
  }

  #fault({ headers, body, inputs }) {
    this.#api.requests.length = 0; // Ten minutes of them would be much.
    this.faults["requests to the upstream"] = (this.faults["requests to the upstream"] ?? 0) + 1;
    this.#look(headers.authorization, body, inputs);
    const what = this.#storm ?? this.#drawn();
    if (what === undefined) return undefined;
    this.faults[`upstream: ${what}`] = (this.faults[`upstream: ${what}`] ?? 0) + 1;
    const done = this.#done.get(inputs.find((text) => this.#done.has(text))) ?? new Set();
    for (const other of inputs) {
      for (const before of this.#done.get(other) ?? []) done.add(before);
      this.#done.set(other, done);
    }
    done.add(what);
    if (what === "429") this.#refusedAtMs.set(`${headers.authorization} ${body.model}`, performance.now());
    if (["reset", "hang", "short"].includes(what)) return what;
    const embedding = inputs.map(() => 0);
    const vectors = (indices) => ({ object: "list", model: body.model, data: indices.map((index) => ({ object: "embedding", index, embedding })) });
    if (what === "long") return { status: 200, body: vectors([...inputs.keys(), inputs.length]) };
    if (what === "an index twice") return { status: 200, body: vectors([...inputs.keys()].map((i) => Math.max(0, i - 1)).concat(inputs.length === 1 ? [0] : [])) };
    if (what === "no JSON of it") return { status: 200, body: "no embeddings" };
    const retryAfterMs = what === "429" ? { "retry-after-ms": String(Math.ceil(this.#draw.between(1, 300))) } : {};
    return { status: Number(what), headers: retryAfterMs };
  } // prettier-ignore

  #look(authorization, { model }, inputs) {
    for (const text of inputs) {
      const tenant = tenantOf(text);
      if (authorization === `Bearer ${tenant.key}`) continue;
      this.#ledger.found("wrong", `a request for ${model}`, `${tenant.name}'s text under another's key`);
    }
  }

  #drawn() {
    let at = this.#draw.between(0, 1000);
    return Object.keys(shares).find((what) => (at -= shares[what]) < 0);
  }
}
