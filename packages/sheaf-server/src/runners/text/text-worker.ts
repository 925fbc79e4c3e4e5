import { defineWorker, type WorkerDefinition } from "sheaf/node";
import {
  loadTextModel,
  runTexts,
  warmUpTexts,
  type TextItem,
  type LoadedText,
  type TextData,
  type TextResult,
} from "./model.ts";

const worker: WorkerDefinition<TextItem, TextResult, TextData> = defineWorker({
  load: loadTextModel,
  warmUp: warmUpTexts,
  run: (items: TextItem[], model: LoadedText, context) => runTexts(items, model, context),
  unload: ({ session }: LoadedText) => session.release(),
});
export default worker;
