import { Callers, inParts, jsonOf, postOf } from "./callers.mjs";
import { limits } from "./served.mjs";
import { standstills } from "./standstill.mjs";

/** Nothing takes longer: the queue, a run, a second run in quarantine, a restart, and a busy machine. */
const hungAfterMs = 30_000;
/** A batch that hangs takes its batch-mates with it, and so does one behind it. */
const hangReachMs = 3 * limits.runTimeoutMs + 2000;

/** Sends random requests to one server and judges every answer. */
export class Requests {
  #server;
  #callers;
  #draw;
  #number = 0;
  #throwers = new Set();
  #hungAtMs = -Infinity;
  #crashedAtMs = -Infinity;
  #answered;
  #isCalm;

  /** `isCalm`: no item hangs or ends its worker. `answered(ms)` gets the time of each answer. */
  constructor(server, ledger, draw, { isCalm = false, answered = () => undefined } = {}) {
    this.#server = server;
    this.#callers = new Callers(server, ledger);
    this.#draw = draw;
    this.#isCalm = isCalm;
    this.#answered = answered;
  }

  /** Another's fault outside of the requests (a stopped or killed worker), which may fail any run. */
  disturbed() {
    this.#hungAtMs = this.#crashedAtMs = performance.now();
  }

  get open() {
    return this.#callers.open;
  }

  async send() {
    const { chance, below, between } = this.#draw;
    const id = `c${++this.#number}`;
    const items = Array.from({ length: chance(0.9) ? 1 : 1 + below(20) }, (_, i) => this.#item(`${id}.${i}`));
    const isBroken = chance(0.02);
    const value = items.length === 1 ? { input: items[0] } : { inputs: items };
    const body = isBroken ? `{"input": ${id}` : JSON.stringify(value);
    const timeoutMs = chance(0.2) ? Math.ceil(between(1, 500)) : undefined;
    const headers = [
      `x-request-id: ${id}`,
      ...(chance(0.3) ? [`x-sheaf-priority: ${this.#draw.of(["immediate", "interactive", "bulk"])}`] : []),
      ...(timeoutMs === undefined ? [] : [`x-request-timeout-ms: ${timeoutMs}`]),
    ];
    const exchange = await this.#callers.exchange(
      `${id} ${body.slice(0, 80)}`,
      inParts(postOf("/infer", headers, body), this.#draw),
      { hungAfterMs, leaveAfterMs: chance(0.05) ? between(0, 100) : undefined, pauseMs: between(1, 300) },
    );
    if (exchange === undefined) return;
    const { answer, ended, sentAtMs } = exchange;
    this.#answered(performance.now() - sentAtMs);
    if (answer.requestId !== id && answer.status !== 400) return ended("wrong", `answers ${answer.requestId}`);
    if (isBroken)
      return [400, 429, 503].includes(answer.status)
        ? ended("not JSON")
        : ended("wrong", `${answer.status} for a body that is not JSON`);
    this.#judge(answer, items, ended, sentAtMs);
  }

  closeConnections() {
    this.#callers.closeConnections();
  }

  #item(id) {
    const { chance, below } = this.#draw;
    const item = { id, number: below(1e9) };
    const fault = this.#draw.between(0, 1);
    if (fault < 0.01) item.do = "fail";
    else if (fault < 0.014) item.do = "throw";
    else if (fault < 0.018) item.do = "slow";
    else if (fault < 0.0184 && !this.#isCalm) item.do = "hang";
    else if (fault < 0.0186 && !this.#isCalm) item.do = "crash";
    if (item.do === "throw") this.#throwers.add(id);
    if (item.do === "hang") this.#hungAtMs = performance.now();
    if (item.do === "crash") this.#crashedAtMs = performance.now();
    if (chance(0.01)) item.text = "\u202E\u0000 𝒞𝒽𝒶ℴ𝓈 \u{10FFFF} __proto__";
    return item;
  }

  #judge({ status, body }, items, ended, sentAtMs) {
    const json = jsonOf(body);
    if (json === undefined) return ended("wrong", `${status} ${body.slice(0, 100)}`);
    if (status === 429) return json.error?.code === "QUEUE_FULL" ? ended("refused (429)") : ended("wrong", body);
    if (status === 503) return this.#unavailable(ended, sentAtMs, json);
    if (status === 200) {
      const outputs = items.length === 1 && json.output !== undefined ? [json.output] : json.outputs;
      if (outputs?.length !== items.length) return ended("wrong", `${items.length} items, ${body.slice(0, 200)}`);
      const complaint = items
        .map((item, i) => this.#complaint(item, outputs[i], sentAtMs))
        .find((text) => text !== undefined);
      return complaint === undefined ? ended("ok") : ended("wrong", complaint);
    }
    const complaint = this.#errorComplaint(items[0], json.error, sentAtMs);
    if (complaint !== undefined || items.length > 1) return ended("wrong", complaint ?? `${status} for several`);
    ended(status === 504 ? "timeout (504)" : "model error (500)");
  }

  #unavailable(ended, sentAtMs, { error }) {
    const nowMs = performance.now();
    const { endedAtMs, drainedAtMs, readyAtMs } = this.#server;
    const wasGoing = readyAtMs > sentAtMs || nowMs - Math.max(endedAtMs, drainedAtMs) < 10_000;
    if (wasGoing || nowMs - this.#crashedAtMs < 70_000) return ended("unavailable (503)");
    ended("wrong", `503 ${error?.code} ${error?.message}`);
  }

  #complaint(item, output, sentAtMs) {
    if (output?.error !== undefined) return this.#errorComplaint(item, output.error, sentAtMs);
    if (item.do !== undefined && item.do !== "slow") return `${item.do} gave ${JSON.stringify(output)}`;
    if (output?.id === item.id && output.number === 2 * item.number) return undefined;
    return `${JSON.stringify(item)} gave ${JSON.stringify(output)}`;
  }

  /** Undefined where the error has a cause. */
  #errorComplaint(item, error, sentAtMs) {
    const { code, message = "" } = error ?? {};
    if (["RUN_TIMEOUT", "WORKER_CRASHED"].includes(code) && standstills().overAtMs > sentAtMs) return undefined;
    if (code === "MODEL_ERROR" && message.includes(`failed by ${item.id}`)) return undefined;
    const thrower = /thrown by (\S+)/.exec(message)?.[1];
    if (code === "MODEL_ERROR" && thrower !== undefined && this.#throwers.has(thrower)) return undefined;
    if (code === "TIMEOUT") return undefined; // Everyone has a timeout; whether it was in time is not judged here.
    if (code === "RUN_TIMEOUT" && sentAtMs - this.#hungAtMs < hangReachMs) return undefined;
    const isOfCrashes = ["WORKER_CRASHED", "NOT_READY"].includes(code);
    if (isOfCrashes && performance.now() - this.#crashedAtMs < 70_000) return undefined;
    if (code === "CLOSED" && this.#server.drainedAtMs > sentAtMs) return undefined;
    return `${JSON.stringify(item)} failed with ${code}: ${message}`;
  }
}
