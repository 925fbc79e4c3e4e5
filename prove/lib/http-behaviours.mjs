// The batch endpoint behind this runtime's own server, asked by the client: `RUNTIME http-behaviours.mjs URL of
// dist/adapters/http/index.js`. One line for each behaviour: "ok NAME" or "failed NAME: why"; the last line is "done".
const argv = globalThis.Deno?.args ?? globalThis.process.argv.slice(2);
const { batchClient, itemEndpoint } = await import(argv[0]);

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const numbers = (count) => Array.from({ length: count }, (_, index) => index);

function equal(actual, expected) {
  const [left, right] = [actual, expected].map((value) => JSON.stringify(value));
  if (left !== right) throw new Error(`expected ${right}, got ${left}`);
}

/** Serves with Bun.serve or Deno.serve; Node has no server of web requests, there fetch hands them over. */
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

const behaviours = {
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
};

for (const [name, behaviour] of Object.entries(behaviours)) {
  try {
    await behaviour();
    console.log(`ok ${name}`);
  } catch (error) {
    console.log(`failed ${name}: ${error?.message ?? error}`);
  }
}
console.log("done");
