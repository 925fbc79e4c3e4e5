/**
 * Server-sent events over fetch, which unlike EventSource can send a key. Comes back by itself: after half a second, then
 * twice as long each time, up to ten seconds.
 */

const silenceMs = 5000; // five ticks missed
const longestPauseMs = 10_000;

/**
 * @param {URL} url
 * @param {{
 *   key: () => string | undefined,
 *   event: (name: string, data: any) => void,
 *   lost: (why: string, retryInMs: number) => void,
 *   evicted: (most: number) => void,
 *   refused: (why: string) => void,
 * }} on
 */
export function openStream(url, on) {
  let pauseMs = 500;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {AbortController | undefined} */
  let current;

  async function connect() {
    clearTimeout(timer);
    current?.abort();
    const controller = (current = new AbortController());
    const key = on.key();
    let why = "The server does not answer.";
    /** @type {number | undefined} */
    let most;
    try {
      const headers = { accept: "text/event-stream", ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) };
      const response = await fetch(url, { headers, cache: "no-store", signal: controller.signal });
      if (response.status === 401 || response.status === 403)
        return on.refused(key === undefined ? "" : await reasonOf(response));
      if (response.ok && response.body !== null) {
        await read(response.body, controller, (name, data) => {
          pauseMs = 500;
          if (name === "evicted") most = data.most;
          else on.event(name, data);
        });
        // To come back would take the place of another viewer, who would come back in turn.
        if (most !== undefined) return on.evicted(most);
        why = "The server closed the connection.";
      } else why = await reasonOf(response);
    } catch {
      // Not there, or silent for too long; `why` says which.
    }
    if (controller !== current) return;
    on.lost(why, pauseMs);
    timer = setTimeout(connect, pauseMs);
    pauseMs = Math.min(longestPauseMs, pauseMs * 2);
  }

  void connect();
  return {
    /** Now instead of after the pause. */
    retry: () => void connect(),
  };
}

/** Reads events until the stream ends. @throws when it is silent for too long */
async function read(
  /** @type {ReadableStream<Uint8Array>} */ body,
  /** @type {AbortController} */ controller,
  /** @type {(name: string, data: any) => void} */ event,
) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const watchdog = setTimeout(() => controller.abort(), silenceMs);
    const { done, value } = await reader.read().finally(() => clearTimeout(watchdog));
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const name = /^event: (.*)$/m.exec(block)?.[1];
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (name !== undefined && data !== undefined) event(name, JSON.parse(data));
    }
  }
}

async function reasonOf(/** @type {Response} */ response) {
  const body = await response.json().catch(() => undefined);
  return body?.error?.message ?? `The server answered ${response.status}.`;
}
