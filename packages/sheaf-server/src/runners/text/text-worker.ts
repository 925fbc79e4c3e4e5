import { defineWorker, type WorkerDefinition } from "sheaf/node";
import {
  loadTextModel,
  runTexts,
  warmUpTexts,
  type TextItem,
  type TextModel,
  type TextModelData,
  type TextResult,
} from "./model.ts";

const worker: WorkerDefinition<TextItem, TextResult, TextModelData> = defineWorker({
  load: loadTextModel,
  warmUp: warmUpTexts,
  run: (items: TextItem[], model: TextModel) => runTexts(items, model),
  unload: ({ session }: TextModel) => session.release(),
});
export default worker;
