import { parentPort } from "node:worker_threads";
import { play, type Play } from "sheaf/internal/tuning";

parentPort!.on("message", (one: Play) => {
  // An error ends the thread, which reports it.
  void play(one).then((played) => parentPort!.postMessage(played));
});
