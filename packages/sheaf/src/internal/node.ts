export type { WorkerLogLine } from "../node/command/options.ts";
export type { WorkerColumn } from "../node/command/declaration.ts";
export type { EncodingWorkerOptions } from "../node/contract/options.ts";
export type { InstanceEvent, InstanceInfo } from "../node/contract/worker-executor.ts";
export { ownCores } from "../node/pool/cores.ts";
export { encodedRow, type RowEncoder } from "../node/wire/encoded-rows.ts";
export {
  elementTypes,
  typedArrays,
  type ElementType,
  type TensorDtype,
  type TypedArray,
} from "../shared/element-types.ts";
