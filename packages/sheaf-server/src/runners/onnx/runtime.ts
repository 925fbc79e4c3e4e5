// The only importer of ONNX Runtime (enforced by test/boundaries.check.test.mjs): the variable must be set before it loads.
import "../../shared/without-telemetry.ts";

export { env, InferenceSession, Tensor } from "onnxruntime-node";
