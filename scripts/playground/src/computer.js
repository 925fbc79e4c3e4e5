import { compute } from "./compute.js";
import { byId } from "./elements.js";

/** @import { Settings } from "./settings.js" */

/** In the worker, which runs the same script without a page: answers the newest request. */
export function answerRequests() {
  let newest = 0;
  addEventListener("message", ({ data: { id, settings } }) => {
    newest = id;
    void answerTo(
      settings,
      (message) => postMessage({ id, ...message }),
      () => newest !== id,
    );
  });
}

/**
 * @param {Settings} settings
 * @param {(message: any) => void} tell
 * @param {() => boolean} isStale
 */
function answerTo(settings, tell, isStale) {
  return compute(settings, tell, isStale).catch((error) => tell({ error: String(error?.message ?? error) }));
}

/** Computes beside the page where a worker may be started, else in it. */
export function computer(/** @type {(message: any) => void} */ heard) {
  let newest = 0;
  const inPage = (/** @type {Settings} */ settings) => {
    const id = ++newest;
    void answerTo(
      settings,
      (message) => id === newest && heard(message),
      () => id !== newest,
    );
  };
  try {
    const source = new Blob([byId("app").textContent ?? ""], { type: "text/javascript" });
    const worker = new Worker(URL.createObjectURL(source));
    /** @type {Settings | undefined} */
    let last;
    let works = true;
    worker.addEventListener("message", ({ data }) => data.id === newest && heard(data));
    worker.addEventListener("error", () => {
      works = false;
      if (last !== undefined) inPage(last);
    });
    return (/** @type {Settings} */ settings) => {
      last = settings;
      if (works) worker.postMessage({ id: ++newest, settings });
      else inPage(settings);
    };
  } catch {
    return inPage;
  }
}
