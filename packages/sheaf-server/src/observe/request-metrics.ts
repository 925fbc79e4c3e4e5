import type { FastifyInstance, FastifyRequest } from "fastify";
import { Buckets, secondsBuckets, type MetricFamily } from "sheaf/internal/metrics";
import { counter } from "./family.ts";

/** Requests by route and status, over HTTP and gRPC. Routes are patterns, so the number of series is bounded. */
export class RequestMetrics {
  readonly #durations = new Map<string, Buckets>();
  readonly #counts = new Map<string, { readonly route: string; readonly status: string; value: number }>();

  /** @param isCounted whether a request counts here */
  count(app: FastifyInstance, isCounted: (request: FastifyRequest) => boolean = () => true): void {
    app.addHook("onResponse", (request, reply, done) => {
      // A stream ends when its viewer goes: its length says nothing about requests.
      if (isCounted(request) && reply.getHeader("content-type") !== "text/event-stream")
        this.record(request.routeOptions.url ?? "none", reply.statusCode, reply.elapsedTime);
      done();
    });
  }

  /** `status` is a number of HTTP, or a name of gRPC. */
  record(route: string, status: number | string, durationMs: number): void {
    let durations = this.#durations.get(route);
    if (durations === undefined) this.#durations.set(route, (durations = new Buckets(secondsBuckets)));
    durations.record(durationMs / 1000);
    const key = `${status} ${route}`;
    const count = this.#counts.get(key);
    if (count === undefined) this.#counts.set(key, { route, status: String(status), value: 1 });
    else count.value++;
  }

  families(): MetricFamily[] {
    return [
      {
        name: "sheaf_request_seconds",
        help: "Time a request took, from its headers to the end of the reply, by route.",
        type: "histogram",
        samples: [...this.#durations].flatMap(([route, durations]) => durations.samples({ route })),
      },
      counter(
        "sheaf_requests_total",
        "Requests answered, by route and status.",
        [...this.#counts.values()].map(({ route, status, value }) => ({ labels: { route, status }, value })),
      ),
    ];
  }
}
