// The batch endpoint behind the runtime's own server, asked by the client.
import { equal, numbers, sleep } from "./behaviours.mjs";

/** Serves with Bun.serve or Deno.serve; Node has no server of web requests and workerd asks none of its own: there fetch hands them over. */
async function serving(endpoint) {
  let requests = 0;
  const fetchAndCount = (request) => {
    requests++;
    return endpoint.fetch(request);
  };
  const count = () => requests;
  if (globalThis.Bun !== undefined) {
    const server = globalThis.Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: fetchAndCount });
    return { url: `http://127.0.0.1:${server.port}/`, options: {}, count, stop: () => server.stop(true) };
  }
  if (globalThis.Deno !== undefined) {
    const server = globalThis.Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, fetchAndCount);
    return { url: `http://127.0.0.1:${server.addr.port}/`, options: {}, count, stop: () => server.shutdown() };
  }
  const fetch = (url, init) => fetchAndCount(new Request(url, init));
  return { url: "http://127.0.0.1/", options: { fetch }, count, stop: () => undefined };
}

/** Of the module `sheaf/adapters/http`. */
export const behavioursOf = ({ batchClient, itemEndpoint }) => ({
  async "HTTP, 500 calls are 5 requests, each with its own result or error"() {
    const endpoint = itemEndpoint((n) => {
      if (n === 13) throw Object.assign(new Error("unlucky"), { status: 409 });
      return 2 * n;
    });
    const { url, options, count, stop } = await serving(endpoint);
    const outcomes = await batchClient(url, options).settle(numbers(500));
    equal(
      outcomes.map(({ value, reason }) => value ?? reason.status),
      numbers(500).map((n) => (n === 13 ? 409 : 2 * n)),
    );
    equal(count(), 5);
    await stop();
  },
  async "HTTP, a wrong body is refused with its status"() {
    const { url, options, stop } = await serving(itemEndpoint((n) => n, { maxBodyBytes: 1000 }));
    const send = options.fetch ?? fetch;
    const post = async (body, type = "application/json") => {
      const response = await send(url, { method: "POST", body, headers: { "content-type": type } });
      await response.text();
      return response.status;
    };
    const large = JSON.stringify({ items: ["x".repeat(2000)] });
    equal([await post("{"), await post("{}"), await post("{}", "text/plain"), await post(large)], [400, 422, 415, 413]);
    await stop();
  },
  async "HTTP, a client that hangs up cancels what runs"() {
    const heard = { running: 0, aborted: 0 };
    const endpoint = itemEndpoint(
      (_, { signal }) => {
        heard.running++;
        return new Promise((resolve) => signal.addEventListener("abort", () => resolve(heard.aborted++)));
      },
      { concurrency: 2 },
    );
    const { url, options, stop } = await serving(endpoint);
    const leaving = new AbortController();
    const calls = batchClient(url, options).settle(numbers(3), { signal: leaving.signal });
    for (let i = 0; i < 500 && heard.running < 2; i++) await sleep(10);
    leaving.abort();
    equal(
      (await calls).map(({ status }) => status),
      ["rejected", "rejected", "rejected"],
    );
    for (let i = 0; i < 500 && heard.aborted < 2; i++) await sleep(10);
    equal(heard, { running: 2, aborted: 2 });
    await stop();
  },
});
