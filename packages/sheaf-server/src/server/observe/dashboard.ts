import type { FastifyInstance } from "fastify";
import type { DashboardState, Playground } from "../../dashboard/observed.ts";
import { dashboardPlugin } from "../../dashboard/plugin.ts";
import type { Link } from "../../dashboard/ticks.ts";
import { describeInput } from "../codec/inputs.ts";
import { isGateway, limitsOf } from "../models/limits.ts";
import type { ServedModel } from "../models/served-model.ts";
import type { Models } from "../models/models.ts";
import { messageOf } from "../http/problem.ts";
import { packageVersion } from "../../shared/version.ts";

/** The live page at `/`: every model's figures, and a playground. An app that has a `/` of its own keeps it. */
export async function dashboardRoutes(app: FastifyInstance, models: Models): Promise<void> {
  if (app.hasRoute({ method: "GET", url: app.prefix === "" ? "/" : app.prefix })) return;
  await dashboardPlugin(app, {
    version: packageVersion(),
    links: linksOf(app, models),
    batchers: models.all.map((model) => ({
      name: model.name,
      maxBatchSize: model.maxBatchSize,
      warning: model.definition.warning,
      stats: () => model.stats(),
      subscribe: (listener) => model.subscribe(listener),
      limits: limitsOf(model),
      playground: playgroundOf(model),
    })),
    state: () => stateOf(models),
  });
}

/** Links that a browser can follow without a key. */
function linksOf(app: FastifyInstance, { all: [model] }: Models): Link[] {
  const hasDocs = app.prefix === "" && app.hasDecorator("swagger");
  return [
    ...(hasDocs ? [{ label: "API", href: "docs" }] : []),
    ...(model?.settings.apiKey === undefined ? [{ label: "Metrics", href: "metrics" }] : []),
  ];
}

/** None on a worker of a fleet, whose items come only from the queue. */
function playgroundOf({ name, settings, definition: { input, example: sample } }: ServedModel): Playground | undefined {
  if (settings.natsUrl !== undefined && settings.role === "worker") return undefined;
  const path = `infer/${encodeURIComponent(name)}`;
  const description = describeInput(input);
  if (input.kind === "floats") return { path, description, sample, input: { kind: "floats", length: input.length } };
  return { path, description, sample, input: { kind: input.kind === "text" ? "text" : "json" } };
}

function stateOf(models: Models): DashboardState {
  return {
    status: models.status,
    batchers: Object.fromEntries(
      models.all.map(({ name, settings, state, failure, workers }) => [
        name,
        {
          state,
          reason: failure === undefined ? undefined : messageOf(failure),
          workers:
            workers?.instances().map(({ id, state }) => ({ id, state })) ?? (isGateway(settings) ? [] : undefined),
          restarts: workers?.restarts,
        },
      ]),
    ),
  };
}
