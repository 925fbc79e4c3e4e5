import { setTimeout as sleep } from "node:timers/promises";
import { Callers, inParts, jsonOf, postOf } from "./callers.mjs";
import { standstills } from "./standstill.mjs";

/** A request has 8 s; the rest is for a machine that has other things to do. */
const hungAfterMs = 30_000;
/** So long may a fleet refuse, in which some process is always killed. */
const patienceMs = 40_000;
const tryAgainMs = 100;
/** A worker that was stopped may tell late that a run took too long. */
const disturbedForMs = 10_000;

/** Clients of a fleet's gateways: each sends its request again, to the other gateway, where it was refused or cut off. */
export class FleetRequests {
  open = 0;
  #callers;
  #ledger;
  #draw;
  #number = 0;
  #throwers = new Set();
  #disturbedAtMs = -Infinity;

  constructor(gateways, ledger, draw) {
    this.#callers = gateways.map((gateway) => new Callers(gateway, ledger));
    this.#ledger = ledger;
    this.#draw = draw;
  }

  /** A process was stopped, or goes on. */
  disturbed() {
    this.#disturbedAtMs = performance.now();
  }

  closeConnections() {
    for (const callers of this.#callers) callers.closeConnections();
  }

  /** `what`: what the item makes its worker do; drawn where it is not given. Resolves when the client has its answer. */
  async send(what = this.#whatToDo()) {
    this.open++;
    await this.#untilAnswered(what);
    this.open--;
  }

  async #untilAnswered(what) {
    const { chance, below, between, of } = this.#draw;
    const item = { id: `f${++this.#number}`, number: below(1e9), do: what };
    if (what === "throw") this.#throwers.add(item.id);
    const name = JSON.stringify(item);
    const headers = [
      `x-sheaf-priority: ${of(["immediate", "interactive", "interactive", "bulk"])}`,
      ...(chance(0.1) && what !== "kill" ? [`x-request-timeout-ms: ${Math.ceil(between(1, 1000))}`] : []),
    ];
    const parts = inParts(postOf("/infer", headers, JSON.stringify({ input: item })), this.#draw);
    const leaveAfterMs = chance(0.05) && what !== "kill" ? between(0, 100) : undefined;
    const untilMs = performance.now() + patienceMs;
    const stoodMs = () => standstills().stoodMs;
    const stoodBeforeMs = stoodMs();
    for (let attempt = below(2); performance.now() < untilMs + stoodMs() - stoodBeforeMs; attempt++) {
      const callers = this.#callers[attempt % this.#callers.length];
      const timing = { hungAfterMs, leaveAfterMs, pauseMs: between(1, 300) };
      const exchange = await callers.exchange(name, parts, timing);
      // It has left.
      if (exchange === undefined && leaveAfterMs !== undefined) return;
      if (exchange !== undefined && this.#isEnd(exchange, item)) return;
      await sleep(tryAgainMs);
    }
    this.#ledger.found("lost", name, `refused or cut off for ${patienceMs} ms`);
  }

  /** Judges an answer; false where the client tries again. */
  #isEnd({ answer, ended, sentAtMs }, item) {
    const { status, retryAfter, body } = answer;
    if (status === 429 || status === 503) {
      if (retryAfter === undefined) ended("wrong", `${status} without Retry-After: ${body.slice(0, 200)}`);
      else ended(status === 429 ? "refused (429)" : "unavailable (503)");
      return false;
    }
    ended(...this.#outcomeOf(answer, item, sentAtMs));
    return true;
  }

  /** The outcome in a word, and what is wrong with it. */
  #outcomeOf({ status, body }, item, sentAtMs) {
    const wrong = ["wrong", `${status} ${body.slice(0, 300)}`];
    const { output, error } = jsonOf(body) ?? {};
    const mayAnswer = item.do === undefined || item.do === "slow";
    if (status === 200) return mayAnswer && output?.id === item.id && output.number === 2 * item.number ? ["ok"] : wrong;
    const { code, message = "" } = error ?? {};
    if (status === 504 && code === "TIMEOUT") return ["timeout (504)"];
    if (status === 504 && code === "RUN_TIMEOUT") return this.#wasDisturbed(sentAtMs) ? ["stopped in a run (504)"] : wrong;
    if (status === 500) return message.includes(`failed by ${item.id}`) || this.#isThrown(message) ? ["model error (500)"] : wrong;
    if (status !== 502 || code !== "DEAD_LETTERED") return wrong;
    // Another's fifth delivery in a row may meet a worker that was ended or stopped too.
    return [item.do === "kill" || item.do === "crash" ? "given up (502)" : "given up though innocent (502)"];
  } // prettier-ignore

  #wasDisturbed(sentAtMs) {
    return sentAtMs - Math.max(this.#disturbedAtMs, standstills().overAtMs) < disturbedForMs;
  }

  #isThrown(message) {
    return this.#throwers.has(/thrown by (\S+)/.exec(message)?.[1]);
  }

  #whatToDo() {
    const fault = this.#draw.between(0, 1);
    if (fault < 0.01) return "fail";
    if (fault < 0.014) return "throw";
    if (fault < 0.02) return "slow";
    return fault < 0.0203 ? "crash" : undefined;
  }
}
