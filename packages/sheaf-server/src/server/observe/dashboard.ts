import type { FastifyInstance } from "fastify";
import type { DashboardBatcher, DashboardState, Playground } from "../../dashboard/observed.ts";
import { dashboardPlugin } from "../../dashboard/plugin.ts";
import type { Link } from "../../dashboard/ticks.ts";
import { describeInput } from "../codec/inputs.ts";
import { roleOf } from "../../settings/role.ts";
import { limitsOf } from "./limits.ts";
import type { Deployment } from "../models/deployment.ts";
import type { ServedModel } from "../models/served-model.ts";
import type { Models } from "../models/models.ts";
import { packageVersion } from "../../shared/version.ts";
import { defaultBatchSize } from "../../settings/settings.ts";
import { needsKey, type Callers } from "../../tenants/callers.ts";

interface MoreFigures {
  batches(): DashboardState["batches"];
  fronts(): DashboardState["fronts"];
}

/** The live page at `/`, with every model's figures and a playground. An app with a route for `/` keeps its own. */
export async function dashboardRoutes(
  app: FastifyInstance,
  models: Models,
  callers: Callers,
  more: MoreFigures,
): Promise<void> {
  if (app.hasRoute({ method: "GET", url: app.prefix === "" ? "/" : app.prefix })) return;
  await dashboardPlugin(app, {
    version: packageVersion(),
    links: linksOf(app, models),
    batchers: () => models.deployments.map(shownOf),
    state: () => ({ ...stateOf(models), tenants: callers.figures, batches: more.batches(), fronts: more.fronts() }),
  });
}

const shown = new WeakMap<object, DashboardBatcher>();

/** A name's entry on the page; a new object each time another model serves under the name. */
function shownOf(deployment: Deployment): DashboardBatcher {
  const { name, settings, current } = deployment;
  const known = shown.get(current ?? deployment);
  if (known !== undefined) return known;
  const batcher: DashboardBatcher = {
    name,
    maxBatchSize: current?.maxBatchSize ?? settings.maxBatchSize ?? defaultBatchSize,
    warning: current?.definition.warning,
    stats: () => deployment.stats(),
    get cache() {
      return deployment.current?.cache;
    },
    subscribe: (listener) => deployment.subscribe(listener),
    limits: current && limitsOf(current),
    playground: current && playgroundOf(current),
  };
  shown.set(current ?? deployment, batcher);
  return batcher;
}

/** Links that a browser can follow without a key. */
function linksOf(app: FastifyInstance, { settings }: Models): Link[] {
  const hasDocs = app.prefix === "" && app.hasDecorator("swagger");
  return [
    ...(hasDocs ? [{ label: "API", href: "docs" }] : []),
    ...(!needsKey(settings) ? [{ label: "Metrics", href: "metrics" }] : []),
  ];
}

/** None on a fleet worker, whose items come only from the queue. */
function playgroundOf({ name, settings, definition: { input, example: sample } }: ServedModel): Playground | undefined {
  if (roleOf(settings) === "worker") return undefined;
  const path = `infer/${encodeURIComponent(name)}`;
  const description = describeInput(input);
  if (input.kind === "floats") return { path, description, sample, input: { kind: "floats", length: input.length } };
  return { path, description, sample, input: { kind: input.kind === "text" ? "text" : "json" } };
}

function stateOf(models: Models): DashboardState {
  return {
    status: models.status,
    batchers: Object.fromEntries(
      models.deployments.map(({ name, settings, state, reason, current: { workers } = {} }) => [
        name,
        {
          state,
          reason,
          workers:
            workers?.instances().map(({ id, state }) => ({ id, state })) ??
            (roleOf(settings) === "gateway" ? [] : undefined),
          restarts: workers?.restarts,
        },
      ]),
    ),
  };
}
