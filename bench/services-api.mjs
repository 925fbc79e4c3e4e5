// The API of bench/services.mjs, in a process of its own: its work is not the clients'. Says its URL; `{ count: true }`
// asks for the number of requests since the last time.
import { embeddingApi } from "../test/fakes/embedding-api.mjs";

const api = await embeddingApi(JSON.parse(process.argv[2]));
process.on("message", () => process.send({ requests: api.requests.splice(0).length }));
process.on("disconnect", () => process.exit());
process.send({ url: api.url });
