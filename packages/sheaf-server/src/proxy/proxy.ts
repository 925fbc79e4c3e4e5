import type { FastifyInstance } from "fastify";
import { checkNames, closeChecks, withOptions, type Closing } from "sheaf/internal";
import { dashboardPlugin, pageEventsPath, publicPagePaths } from "../dashboard/plugin.ts";
import { sendCacheUse } from "../cache/cache-use.ts";
import { answerProblems, listen, openApp } from "../http/app.ts";
import { showSchemasOnly, takeJsonAsBytes } from "../http/bodies/body.ts";
import { closeApp } from "../http/lifecycle/close-app.ts";
import { crossOrigin } from "../http/cross-origin.ts";
import { logBatches } from "../observe/log.ts";
import { takeTurns } from "../http/lifecycle/connection-turns.ts";
import { InFlightReplies } from "../http/lifecycle/in-flight-replies.ts";
import { cacheFamilies } from "../observe/cache-metrics.ts";
import { healthRoutes } from "../http/health.ts";
import { metricsPath, metricsRoute } from "../http/metrics.ts";
import { defaultSettings, proxyDefaults, runTimeoutOf, settingsTable, type Settings } from "../settings/settings.ts";
import { packageVersion } from "../shared/version.ts";
import { checkCallers } from "../http/check-callers.ts";
import { readInTurns } from "../http/thread-turns.ts";
import { healthPaths } from "../http/health-paths.ts";
import { tenantFamilies } from "../observe/tenant-metrics.ts";
import { Callers } from "../tenants/callers.ts";
import { answerEmbeddings } from "./embeddings-route.ts";
import { KeyBatchers } from "./key-batchers.ts";
import type { LimitRow } from "../dashboard/observed.ts";
import { limitFamilies, limitRows } from "./upstream-limits.ts";
import { longestAnswerMs, PacedKeys } from "./paced-keys.ts";
import { passThrough } from "./pass-through.ts";

/** As deep as APIs nest the route: `/v1/embeddings`, Azure's `/openai/deployments/NAME/embeddings`. */
const embeddingsPaths = ["", "/:a", "/:a/:b", "/:a/:b/:c", "/:a/:b/:c/:d"].map((path) => `${path}/embeddings`);

const guardedPaths = {
  open: new Set([...healthPaths, ...publicPagePaths]),
  operators: new Set([metricsPath, pageEventsPath]),
};

export interface ProxyOptions {
  /** Base URL of the API, such as `https://api.openai.com/v1`. Required. */
  readonly upstream: string;
  /**
   * Settings that differ from those of `sheaf proxy`.
   * @default those of `sheaf proxy`
   */
  readonly settings?: Partial<Settings> | undefined;
}

export interface SheafProxy {
  /** The Fastify instance, for hooks of your own before `listen`. */
  readonly app: FastifyInstance;
  /** Starts to listen. @returns the URL it listens on. */
  listen(): Promise<string>;
  /**
   * Takes no more requests and finishes accepted ones. Requests left after `graceMs` get 503.
   * @returns whether everything was finished.
   */
  close(options?: {
    /**
     * Time for accepted requests to finish, in milliseconds.
     * @default the setting `shutdownGraceMs`
     */
    readonly graceMs?: number | undefined;
  }): Promise<boolean>;
}

/**
 * A gateway for an OpenAI-compatible API: many embeddings requests share a few requests to it, and every other route passes through.
 * Requests of different keys, models or parameters never share one. Nothing listens before `listen()`.
 */
export async function createProxy(options: ProxyOptions): Promise<SheafProxy> {
  checkNames(options, { upstream: true, settings: true });
  const { upstream, settings: given = {} } = options;
  checkNames(given, defaultSettings, "settings");
  const settings = { ...defaultSettings, ...proxyDefaults, ...given };
  const base = settingsTable.find(({ name }) => name === "upstream")!.parse(upstream) as string | undefined;
  if (base === undefined) throw new TypeError(`upstream must be an http or https URL without user, query or fragment`);
  const app = openApp(settings, Math.max(settings.requestTimeoutMs + longestAnswerMs, runTimeoutOf(settings)));
  const keyBatchers = new KeyBatchers(settings);
  const pacedKeys = new PacedKeys(settings);
  const callers = new Callers(settings, app.log);
  app.addHook("onClose", async () => callers.close());
  const replies = new InFlightReplies(app);
  replies.cutUnread(app);
  takeTurns(app);
  const parts = { keyBatchers, pacedKeys, base, settings };
  await crossOrigin(app, settings.corsOrigins);
  answerProblems(app, keyBatchers);
  checkCallers(app, callers, guardedPaths);
  readInTurns(app);
  for (const batchers of [keyBatchers, pacedKeys]) logBatches(app.log, batchers.name, batchers);
  await app.register(async (own) => {
    takeJsonAsBytes(own);
    showSchemasOnly(own);
    if (settings.cacheMaxBytes > 0) sendCacheUse(own);
    for (const path of embeddingsPaths) own.post(path, (request, reply) => answerEmbeddings(request, reply, parts));
    const limits = (): LimitRow[] => limitRows([...pacedKeys.models, ...keyBatchers.models]);
    const status = (): string => (keyBatchers.isDraining ? "draining" : "ok");
    healthRoutes(own, () => ({ status: status() }));
    metricsRoute(
      own,
      { watch: (watcher) => [keyBatchers, pacedKeys].forEach((batchers) => void watcher(batchers)) },
      () => [...cacheFamilies([keyBatchers]), ...tenantFamilies(callers), ...limitFamilies(limits())],
    );
    await dashboardPlugin(own, {
      title: "Sheaf proxy",
      version: packageVersion(),
      batchers: [keyBatchers, pacedKeys],
      state: () => ({ status: status(), batchers: {}, tenants: callers.figures, rateLimits: limits() }),
    });
  });
  let passing: InFlightReplies | undefined;
  await app.register(async (others) => void (passing = await passThrough(others, parts)));

  return {
    app,
    listen: () => listen(app, settings),
    close: withOptions(closeChecks, async ({ graceMs = settings.shutdownGraceMs }: Closing) => {
      const closing = [keyBatchers.close(graceMs), pacedKeys.close(graceMs)];
      const [isComplete] = await Promise.all([Promise.all(closing), passing!.left(graceMs)]);
      await closeApp(app, replies, graceMs);
      return isComplete.every(Boolean);
    }),
  };
}
