import { runLoad } from "../../packages/sheaf-server/dist/load/generator.js";
import { httpTarget } from "../../packages/sheaf-server/dist/load/http/http-target.js";
import { renderRequest } from "../../packages/sheaf-server/dist/load/http/request.js";
import { systemClock } from "../../packages/sheaf-server/dist/load/system-clock.js";

const warmUpMs = 1000;
const timeoutMs = 120_000;
/** Of all requests; a server that fails more is not measured. */
const leastOk = 0.99;

/** Callers in a closed loop with so many texts a request. */
export async function closedLoop(server, { texts, perRequest, callers, seconds, seed }) {
  const { answeredInSpan, latencyMs, cpuMs, answered } = await driven(server, texts, perRequest, {
    pattern: "closed",
    callers,
    durationMs: 1000 * seconds,
    seed,
  });
  const textsPerS = (perRequest * answeredInSpan) / seconds;
  return { textsPerS, p50Ms: latencyMs.p50, cpuMs: cpuMs / (answered * perRequest) };
}

/** Poisson arrivals of single texts. */
export async function openLoop(server, { texts, ratePerS, seconds, seed }) {
  const { latencyMs, cpuMs, answered } = await driven(server, texts, 1, {
    pattern: "steady",
    ratePerS,
    durationMs: 1000 * seconds,
    seed,
  });
  return { ratePerS, p50Ms: latencyMs.p50, p99Ms: latencyMs.p99, cpuMs: cpuMs / answered };
}

async function driven(server, texts, perRequest, load) {
  const [{ path, request }] = Object.values(server.formats);
  const url = new URL(path, `http://127.0.0.1:${server.port}`);
  const inputs = Array.from({ length: texts.length / perRequest }, (_, i) =>
    texts.slice(i * perRequest, (i + 1) * perRequest).map(({ text }) => text),
  );
  const requests = inputs.map((input) => {
    const { headers, body } = request(perRequest === 1 ? input[0] : input);
    return renderRequest({ url, method: "POST", headers, body: body.toString("utf8") });
  });
  const inner = httpTarget({ url, requests });
  let answered = 0;
  let answeredInSpan = 0;
  // Each round begins with another text.
  const first = 37 * load.seed;
  const target = {
    send: (index, done) =>
      inner.send(first + index, (end) => {
        if (end.status !== 200) return done(end);
        answered++;
        // Those that began before the span as well: the result's own rate leaves them out, which costs slow servers most.
        const atMs = performance.now() - startedAtMs - warmUpMs;
        if (atMs >= 0 && atMs < load.durationMs) answeredInSpan++;
        done(end);
      }),
    get waited() {
      return inner.waited;
    },
    close: () => inner.close(),
  };
  const cpuBefore = server.cpuSeconds();
  const startedAtMs = performance.now();
  const result = await runLoad({ configuration: "text", target, clock: systemClock, warmUpMs, timeoutMs, ...load });
  const cpuMs = 1000 * (server.cpuSeconds() - cpuBefore);
  target.close();
  if (result.successRate < leastOk) throw new Error(`only ${result.ok} of ${result.requests}: ${result.lastErrorBody}`);
  return { ...result, cpuMs, answered, answeredInSpan };
}
