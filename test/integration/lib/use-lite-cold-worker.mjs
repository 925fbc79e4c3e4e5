// use-lite without its warm-up, which runs thirty shapes: minutes where a CPU plays the GPU.
import { defineWorker } from "sheaf/node";
import {
  cutVectors,
  embedTokens,
  loadUseLite,
  tokenizeTexts,
} from "../../../packages/sheaf-server/dist/runners/use-lite/use-lite-worker.js";

export default defineWorker({
  load: loadUseLite,
  preprocess: tokenizeTexts,
  run: embedTokens,
  postprocess: cutVectors,
});
