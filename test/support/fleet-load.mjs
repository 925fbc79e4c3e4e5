// Open-loop load on a fleet's gateways by a client that behaves as clients should: it takes turns between gateways and
// tries again where the answer allows it, or where the connection broke. Every answer must be its own.
import { Agent, request } from "node:http";

const tryAgainMs = 100;
const givenUpAfterMs = 40_000;
/** Callers notice an answer that takes longer than this. For them the fault ends with the last such answer. */
const feltMs = 500;
/** A version takes over within so long; then no other one may answer. */
const takesOverMs = 500;

/**
 * @param {{ gateways: { origin: string }[], rate: number, durationMs: number, fault?: () => unknown, faultAtMs?: number }} options
 */
export async function load({ gateways, rate, durationMs, fault, faultAtMs = durationMs / 3 }) {
  const agent = new Agent({ keepAlive: true, maxSockets: 4096 });
  const counts = { sent: 0, answered: 0, wrong: 0, mixed: 0, twice: 0, unanswered: 0, retried: 0, cut: 0 };
  const statuses = {};
  /** Of refusals: how often each was given, and how many did not say when to come back. */
  const reasons = {};
  let withoutRetryAfter = 0;
  const latenciesMs = [];
  let sizes = 0;
  let queueMs = 0;
  /** When each version of the model answered first, the newest last. */
  const versions = new Map();
  const startedAtMs = performance.now();
  let faultMs;
  let recoveredMs = 0;
  let late = 0;
  let longestMs = 0;
  const running = [];
  const faulting =
    fault === undefined
      ? undefined
      : sleepUntil(startedAtMs + faultAtMs).then(() => {
          faultMs = performance.now();
          return fault();
        });
  for (let next = 0; next * (1000 / rate) < durationMs;) {
    const due = Math.floor(((performance.now() - startedAtMs) * rate) / 1000);
    for (; next <= due && next * (1000 / rate) < durationMs; next++)
      running.push(ask(next, startedAtMs + (next * 1000) / rate));
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  await Promise.all(running);
  await faulting;
  agent.destroy();
  latenciesMs.sort((a, b) => a - b);
  const quantile = (rank) => latenciesMs[Math.min(latenciesMs.length - 1, Math.floor(rank * latenciesMs.length))] ?? 0;
  return {
    ...counts,
    statuses,
    reasons,
    withoutRetryAfter,
    p50Ms: quantile(0.5),
    p99Ms: quantile(0.99),
    longestMs,
    late,
    recoveredMs,
    meanBatchSize: sizes / counts.answered,
    meanQueueMs: queueMs / counts.answered,
  };

  async function ask(id, dueAtMs) {
    counts.sent++;
    for (let attempt = 0; performance.now() - dueAtMs < givenUpAfterMs; attempt++) {
      const gateway = gateways[(id + attempt) % gateways.length];
      const sentAtMs = performance.now();
      const reply = await post(agent, `${gateway.origin}/infer`, { input: { id } });
      if (reply.answers > 1) counts.twice++;
      statuses[reply.status] = (statuses[reply.status] ?? 0) + 1;
      if (reply.status === 0) counts.cut++;
      if (reply.status === 0 || reply.status === 503 || reply.status === 429) {
        counts.retried++;
        if (reply.status !== 0) {
          const reason = reply.json?.error?.message;
          reasons[reason] = (reasons[reason] ?? 0) + 1;
          if (!(Number(reply.headers["retry-after"]) >= 1)) withoutRetryAfter++;
        }
        await new Promise((resolve) => setTimeout(resolve, tryAgainMs));
        continue;
      }
      const nowMs = performance.now();
      const { version } = reply.json?.output ?? {};
      if (!versions.has(version)) versions.set(version, nowMs);
      const [newest, sinceMs] = [...versions].at(-1);
      if (version !== newest && sentAtMs > sinceMs + takesOverMs) counts.mixed++;
      const tookMs = nowMs - dueAtMs;
      latenciesMs.push(tookMs);
      longestMs = Math.max(longestMs, tookMs);
      if (tookMs > feltMs && faultMs !== undefined) {
        late++;
        recoveredMs = Math.max(recoveredMs, nowMs - faultMs);
      }
      counts.answered++;
      sizes += reply.json?.batch_size ?? 0;
      queueMs += reply.json?.queue_ms ?? 0;
      if (reply.status !== 200 || reply.json?.output?.id !== id || reply.json.output.twice !== 2 * id) counts.wrong++;
      return;
    }
    counts.unanswered++;
  }
}

const sleepUntil = (atMs) => new Promise((resolve) => setTimeout(resolve, Math.max(0, atMs - performance.now())));

/** One request; status 0 where the connection broke before an answer. `answers` counts responses. */
export function post(agent, url, body, headers = {}) {
  return new Promise((resolve) => {
    const payload = JSON.stringify(body);
    let answers = 0;
    const call = request(
      url,
      {
        method: "POST",
        agent,
        headers: { "content-type": "application/json", "content-length": Buffer.byteLength(payload), ...headers },
      },
      (response) => {
        answers++;
        let text = "";
        response.setEncoding("utf8").on("data", (chunk) => (text += chunk));
        response.on("end", () =>
          resolve({ status: response.statusCode, headers: response.headers, json: parsed(text), answers }),
        );
        response.on("error", () => resolve({ status: 0, answers }));
        response.on("aborted", () => resolve({ status: 0, answers }));
      },
    );
    call.on("error", () => resolve({ status: 0, answers }));
    call.end(payload);
  });
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
