/**
 * `npm run bench -- python`, with the options of `npm run bench -- peers`: the same comparison, where every server runs the
 * model in Python, Sheaf too. Ray Serve, BentoML, MLServer and LitServe fall behind early.
 */
import { compare } from "./peers/compare.mjs";

await compare({
  command: "python",
  title: "A Python model behind each server",
  defaultServers: ["sheaf-python", "mosec", "triton", "litserve", "mlserver", "bentoml", "ray"],
});
