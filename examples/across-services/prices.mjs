// The service that is asked. It knows how to look up one price; the endpoint takes many, a bounded number at once.
import { setTimeout as sleep } from "node:timers/promises";
import Fastify from "fastify";
import { itemEndpoint } from "sheaf/adapters/http";

async function priceOf({ sku }, { signal }) {
  if (sku < 0) throw Object.assign(new Error(`there is no product ${sku}`), { status: 404, code: "NO_PRODUCT" });
  await sleep(5, undefined, { signal }); // the lookup; ends early when its caller has left
  return { sku, cents: 100 + 7 * sku };
}

// The same function behind both: POST /price for one product, POST /prices for many.
export function pricesService() {
  const app = Fastify();
  const seen = { single: 0, batch: 0 };
  app.addHook("onRequest", async ({ url }) => void (url === "/prices" ? seen.batch++ : seen.single++));
  app.post("/price", ({ body }) => priceOf(body, {}));
  app.register(itemEndpoint(priceOf, { concurrency: 50, timeoutMs: 2000 }).fastify, { url: "/prices" });
  return { app, seen };
}
