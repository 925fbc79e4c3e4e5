import { vectorOf } from "../../../../test/fakes/embedding-api.mjs";
import { Callers, inParts, jsonOf, postOf } from "./callers.mjs";
import { isPoison, tenants, textOf } from "./tenants.mjs";

const hungAfterMs = 30_000;
/** What the proxy makes of an invalid answer. */
const noAnswers = ["reset", "short", "long", "an index twice", "no JSON of it"];

/** Sends random requests of two tenants through the proxy and judges every answer. */
export class ProxyRequests {
  #proxy;
  #upstream;
  #callers;
  #draw;
  #number = 0;

  constructor(proxy, upstream, ledger, draw) {
    this.#proxy = proxy;
    this.#upstream = upstream;
    this.#callers = new Callers(proxy, ledger);
    this.#draw = draw;
  }

  get open() {
    return this.#callers.open;
  }

  closeConnections() {
    this.#callers.closeConnections();
  }

  async send() {
    const { chance, below, between, of } = this.#draw;
    const tenant = of(tenants);
    const id = `p${++this.#number}`;
    const count = chance(0.85) ? 1 : 1 + below(10);
    const texts = Array.from({ length: count }, (_, i) => textOf(tenant, `${id}.${i}`, chance(0.004)));
    const asked = {
      model: of(["small", "large"]),
      dimensions: of([undefined, undefined, 4]),
      encoding_format: of([undefined, undefined, "base64"]),
    };
    const isSingle = count === 1 && chance(0.7);
    const body = JSON.stringify({ ...asked, input: isSingle ? texts[0] : texts });
    const headers = [
      `authorization: Bearer ${tenant.key}`,
      ...(chance(0.1) ? [`x-request-timeout-ms: ${Math.ceil(between(1, 1000))}`] : []),
    ];
    const exchange = await this.#callers.exchange(
      `${id} ${body.slice(0, 80)}`,
      inParts(postOf("/v1/embeddings", headers, body), this.#draw),
      { hungAfterMs, leaveAfterMs: chance(0.05) ? between(0, 100) : undefined, pauseMs: between(1, 300) },
    );
    const met = this.#upstream.metBy(texts);
    if (exchange === undefined) return;
    const { answer, ended, sentAtMs } = exchange;
    // The reply may have been under way when the call came.
    if (this.#upstream.hasRefusedSince(tenant.key, asked.model, sentAtMs - 5000)) met.add("429");
    ended(...this.#outcomeOf(answer, { texts, asked, isSingle, met, sentAtMs }));
  }

  /** The outcome in a word, and what is wrong with it. An error must have a cause in what the upstream did. */
  #outcomeOf({ status, body }, { texts, asked, isSingle, met, sentAtMs }) {
    if (tenants.some(({ key }) => body.includes(key))) return ["wrong", "an answer with a key in it"];
    const json = jsonOf(body);
    const said = `${status} ${body.slice(0, 200)}; the upstream had answered ${[...met].join(", ") || "well"}`;
    const outcome = (isSo, word) => (isSo ? [word] : ["wrong", said]);
    if (status === 200) return outcome(isOwn(json, texts, asked), "ok");
    if (status === 400) return outcome(namesOwnPoison(json, texts, isSingle), "poison (400)");
    if (status === 429 && json?.error?.code === "QUEUE_FULL") return ["refused (429)"];
    if (status === 429) return outcome(met.has("429"), "upstream's 429");
    if (status === 500) return outcome(met.has("500"), "upstream's 500");
    if (status === 502) return outcome(noAnswers.some((what) => met.has(what)), "no answer from upstream (502)");
    if (status === 504) return ["timeout (504)"];
    if (status === 503 && met.has("503")) return ["upstream's 503"];
    return outcome(status === 503 && this.#wasGoing(sentAtMs), "unavailable (503)");
  } // prettier-ignore

  #wasGoing(sentAtMs) {
    const { endedAtMs, drainedAtMs, readyAtMs } = this.#proxy;
    return readyAtMs > sentAtMs || performance.now() - Math.max(endedAtMs, drainedAtMs) < 10_000;
  }
}

function isOwn(json, texts, { model, dimensions = 8, encoding_format: encoding }) {
  if (json?.model !== model || json.data?.length !== texts.length) return false;
  return json.data.every(({ index, embedding }, i) => {
    const vector = vectorOf(texts[i], dimensions);
    const own = encoding === "base64" ? base64Of(vector) : JSON.stringify(vector);
    return index === i && own === (encoding === "base64" ? embedding : JSON.stringify(embedding));
  });
}

/** The caller knows nothing of the batch: the input that is named is its own, by its own place. */
function namesOwnPoison(json, texts, isSingle) {
  const place = texts.findIndex(isPoison);
  return place >= 0 && json?.error?.param === (isSingle ? "input" : `input[${place}]`);
}

const base64Of = (vector) => Buffer.from(Float32Array.from(vector).buffer).toString("base64");
