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
export { definitionOf as workerModel } from "./server/models/worker-model.ts";
export { builtinModels } from "./runners/builtin.ts";
export { defaultSettings } from "./settings/settings.ts";
export type { ModelDefinition } from "./server/contract/model-definition.ts";
export type { ModelSpec } from "./runners/contract/model-spec.ts";
