import { ChaosConnection } from "./connection.mjs";
import { afterRunning, standstills } from "./standstill.mjs";

/** Keep-alive connections to a program that comes and goes, and what it means when one ends without an answer. */
export class Callers {
  open = 0;
  #program;
  #ledger;
  #idle = [];

  constructor(program, ledger) {
    this.#program = program;
    this.#ledger = ledger;
  }

  /**
   * Sends a request in `parts`, with `pauseMs` between two, and leaves after `leaveAfterMs` if that is given. Gives the
   * answer, when it was sent and the ledger's word for its end; undefined where no answer came, which is judged here.
   */
  async exchange(name, parts, { pauseMs = 0, leaveAfterMs, hungAfterMs }) {
    const connection = this.#connection();
    let hasLeft = false;
    const leave = () => {
      hasLeft = true;
      connection.destroy();
    };
    const leaving = leaveAfterMs === undefined ? undefined : setTimeout(leave, leaveAfterMs);
    const sentAtMs = performance.now();
    const ended = this.#ledger.send(name, hungAfterMs);
    this.open++;
    let hasHung = false;
    const stopWaiting = afterRunning(hungAfterMs, () => {
      hasHung = true;
      connection.destroy();
    });
    const answer = await connection.request(parts, pauseMs);
    this.open--;
    clearTimeout(leaving);
    stopWaiting();
    if (hasHung) return undefined; // The ledger has seen that by itself.
    if (connection.isOpen) this.#idle.push(connection);
    // The other part of it was still to come.
    if (answer?.status === 408 && standstills().overAtMs > sentAtMs) return void ended("too slow after a standstill");
    if (answer !== undefined) return { answer, ended, sentAtMs };
    if (hasLeft) ended("the client left");
    else this.#cut(ended, sentAtMs, connection.writtenAtMs);
    return undefined;
  }

  closeConnections() {
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }

  #connection() {
    for (let idle = this.#idle.shift(); idle !== undefined; idle = this.#idle.shift()) if (idle.isOpen) return idle;
    return new ChaosConnection(this.#program.port, (text) => this.#ledger.unasked(this.#program.name, text));
  }

  /** No answer: right only where the program was ended while it was open, or was being drained when it was sent. */
  #cut(ended, sentAtMs, writtenAtMs) {
    const { endedAtMs, drainedAtMs, readyAtMs } = this.#program;
    const nowMs = performance.now();
    const since = (atMs) => `${Math.round(nowMs - atMs)} ms ago`;
    const when = `sent ${since(sentAtMs)}, told to drain ${since(drainedAtMs)}, ended ${since(endedAtMs)}`;
    // Told to drain after all of it was sent, and not ended since: it was in, and had to be answered.
    if (drainedAtMs > writtenAtMs && drainedAtMs > endedAtMs) return ended("lost", when);
    if (drainedAtMs > sentAtMs) return ended("cut while it was sent");
    if (standstills().overAtMs > sentAtMs) return ended("cut after a standstill");
    const wasGone = endedAtMs >= sentAtMs || readyAtMs === Infinity || readyAtMs >= sentAtMs;
    ended(wasGone || sentAtMs >= drainedAtMs - 50 ? "cut by a kill" : "lost", when);
  }
}

/** A POST of JSON as bytes: a text that is cut between two surrogates would not stay the same. */
export function postOf(path, headers, body) {
  const lines = [
    "host: localhost",
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    ...headers,
  ];
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n${body}`);
}

/** In one part, or now and then in two, cut anywhere. */
export function inParts(bytes, { chance, below }) {
  const cut = below(bytes.length);
  return chance(0.05) ? [bytes.subarray(0, cut), bytes.subarray(cut)] : [bytes];
}

/** Undefined for what is not JSON. */
export function jsonOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
