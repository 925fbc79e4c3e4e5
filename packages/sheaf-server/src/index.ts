// First: it must run before anything loads ONNX Runtime or starts a worker.
import "./shared/without-telemetry.ts";

export { createServer } from "./server/server.ts";
export type { ServerOptions, SheafServer } from "./server/server.ts";
export { createProxy } from "./proxy/proxy.ts";
export type { ProxyOptions, SheafProxy } from "./proxy/proxy.ts";
export { sheafPlugin } from "./server/plugin.ts";
export type { SheafPluginOptions } from "./server/plugin.ts";
export { dashboardPlugin } from "./dashboard/plugin.ts";
export type { DashboardOptions } from "./dashboard/plugin.ts";
export type {
  BatcherState,
  CacheFigures,
  DashboardBatcher,
  DashboardState,
  Limit,
  Playground,
} from "./dashboard/observed.ts";
export { definitionOf as workerModel } from "./server/models/worker-model.ts";
export { builtinModels } from "./runners/builtin.ts";
export { defaultSettings } from "./settings/settings.ts";
export type { Settings } from "./settings/settings.ts";
export type { ModelDefinition } from "./server/contract/model-definition.ts";
export type { Served } from "./cache/served.ts";
export type { ModelState, ServedModel } from "./server/models/served-model.ts";
export type { Models } from "./server/models/models.ts";
export type {
  ModelInput,
  ModelOutput,
  ModelSpec,
  RunnerSettings,
  TensorDatatype,
  TensorSpec,
} from "./runners/contract/model-spec.ts";
