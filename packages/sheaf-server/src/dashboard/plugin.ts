import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { assetNames, readAssets, type Asset } from "./assets.ts";
import type { DashboardBatcher, DashboardState } from "./observed.ts";
import { Streams } from "./streams.ts";
import { Ticks, type Link } from "./ticks.ts";

export interface DashboardOptions {
  /** Batchers to show. A function is called once a second: a batcher that is another object has changed. Required. */
  readonly batchers: readonly DashboardBatcher[] | (() => readonly DashboardBatcher[]);
  /**
   * The state to show, asked once a second for all viewers.
   * @default every batcher is ready
   */
  readonly state?: (() => DashboardState) | undefined;
  /**
   * Title of the page.
   * @default "Sheaf"
   */
  readonly title?: string | undefined;
  /**
   * Version shown beside the title.
   * @default none
   */
  readonly version?: string | undefined;
  /**
   * Links shown beside the title.
   * @default none
   */
  readonly links?: readonly Link[] | undefined;
  /**
   * Most viewers at once; one more takes the place of one that does not read, or of the oldest of the address that has the most.
   * @default 32
   */
  readonly maxViewers?: number | undefined;
}

export const pageEventsPath = "/dashboard/events";

/** The page itself needs no key: it shows nothing before it has one. Everything it shows comes from `dashboard/events`. */
export const publicPagePaths: ReadonlySet<string> = new Set([
  "",
  "/",
  ...assetNames.map((name) => `/dashboard/${name}`),
]);

// The page's own files and its own server, and nothing else: no inline script or style, no frame around it.
const contentPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/**
 * Fastify plugin with the live page: `GET /`, its files at `/dashboard/…`, and `/dashboard/events`, which sends every
 * viewer the same snapshot once a second as server-sent events.
 * @experimental It may change in any minor version.
 */
export async function dashboardPlugin(app: FastifyInstance, options: DashboardOptions): Promise<void> {
  const { batchers, title = "Sheaf", version = "", links = [], maxViewers = 32 } = options;
  if (typeof batchers !== "function" && batchers.length === 0)
    throw new TypeError("The page needs at least one batcher.");
  const state = options.state ?? (() => ({ status: "ok", batchers: {} }));
  const ticks = new Ticks(typeof batchers === "function" ? batchers : () => batchers, state, (error) =>
    app.log.error({ err: error }, "no snapshot for the page"),
  );
  const streams = new Streams(ticks, () => ticks.hello({ title, version, links }), maxViewers);
  const assets = readAssets();
  const hidden = { schema: { hide: true } as object, logLevel: "warn" } as const;

  app.get("/", hidden, (request, reply) => {
    // The page's links are relative to its folder: `/ai` must become `/ai/`.
    const [path = "", query] = request.url.split("?", 2);
    if (!path.endsWith("/"))
      return reply.redirect(`${path.split("/").at(-1)}/${query === undefined ? "" : `?${query}`}`, 308);
    return sendAsset(request, reply, assets.get("index.html")!);
  });
  for (const [name, asset] of assets)
    app.get(`/dashboard/${name}`, hidden, (request, reply) => sendAsset(request, reply, asset));
  // A HEAD would hold a place and read nothing.
  app.get(pageEventsPath, { ...hidden, exposeHeadRoute: false }, (request, reply) => {
    void reply.type("text/event-stream").header("cache-control", "no-store").header("x-accel-buffering", "no");
    return reply.send(streams.open(request.ip));
  });
  // The last tick gives viewers the reason why their streams end.
  app.addHook("preClose", (done) => {
    ticks.take();
    streams.close();
    ticks.close();
    done();
  });
}

function sendAsset(request: FastifyRequest, reply: FastifyReply, { type, content, etag }: Asset): FastifyReply {
  void reply.headers({
    "content-security-policy": contentPolicy,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
    etag,
  });
  if (request.headers["if-none-match"] === etag) return reply.code(304).send();
  return reply.type(type).send(content);
}
