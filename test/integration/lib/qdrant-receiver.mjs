// Not Qdrant: a receiver that holds requests against Qdrant's published REST API (PUT …/points, POST …/points/query/batch),
// refuses what that API refuses, and answers from memory by exact search. It shows the shape of what is sent, no more.
import { createServer } from "node:http";
import { once } from "node:events";

const uuid = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

/** A collection of `dimensions` under cosine. `requests` are those that came; `fail(answer)` answers the next one. */
export async function startReceiver(dimensions) {
  const points = new Map();
  const requests = [];
  let next;
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const reply = (status, body, headers = {}) => {
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(JSON.stringify(body));
    };
    const { pathname, searchParams } = new URL(request.url, "http://receiver");
    if (request.method === "GET") return reply(200, { title: "qdrant", version: "1.18.0" }); // The client looks for servers.
    const body = JSON.parse(text);
    requests.push({ method: request.method, pathname, wait: searchParams.get("wait"), body });
    if (next !== undefined) {
      const answer = next;
      next = undefined;
      return reply(answer.status, answer.body ?? { status: { error: "told to fail" }, time: 0 }, answer.headers);
    }
    const complaint = complaintOn(request.method, pathname, body, dimensions);
    if (complaint !== undefined) return reply(400, { status: { error: complaint }, time: 0 });
    const ok = (result) => reply(200, { result, status: "ok", time: 0.001 });
    if (request.method === "PUT") {
      for (const point of body.points) points.set(String(point.id), point);
      return ok({ operation_id: requests.length, status: "completed" });
    }
    return ok(body.searches.map((search) => ({ points: nearest([...points.values()], search) })));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: server.address().port,
    points,
    requests,
    fail: (answer) => (next = answer),
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

function complaintOn(method, pathname, body, dimensions) {
  const onlyKeys = (object, allowed) => Object.keys(object).find((key) => !allowed.includes(key));
  const isVector = (vector) => Array.isArray(vector) && vector.every((x) => typeof x === "number");
  if (method === "PUT" && pathname === "/collections/docs/points") {
    const extra = onlyKeys(body, ["points", "shard_key"]);
    if (extra !== undefined) return `unknown field ${extra}`;
    for (const point of body.points) {
      if (onlyKeys(point, ["id", "vector", "payload"])) return "Format error in JSON body";
      if (!(Number.isInteger(point.id) && point.id >= 0) && !uuid.test(point.id)) {
        return `value ${point.id} is not a valid point ID, valid values are either an unsigned integer or a UUID`;
      }
      if (!isVector(point.vector)) return "Format error in JSON body: vector";
      if (point.vector.length !== dimensions) {
        return `Wrong input: Vector dimension error: expected dim: ${dimensions}, got ${point.vector.length}`;
      }
    }
    return undefined;
  }
  if (method === "POST" && pathname === "/collections/docs/points/query/batch") {
    for (const search of body.searches) {
      if (onlyKeys(search, ["query", "limit", "filter", "with_payload"])) return "Format error in JSON body";
      if (!isVector(search.query) || search.query.length !== dimensions) return "Wrong input: Vector dimension error";
      if (!(Number.isInteger(search.limit) && search.limit >= 1)) return "limit: value 0 invalid, must be 1 or larger";
    }
    return undefined;
  }
  return `no such route: ${method} ${pathname}`;
}

function nearest(points, { query, limit, filter }) {
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  const passes = ({ payload }) => (filter?.must ?? []).every(({ key, match }) => payload[key] === match.value);
  return points
    .filter(passes)
    .map(({ id, vector, payload }) => ({
      id,
      version: 0,
      score: dot(query, vector) / Math.sqrt(dot(query, query) * dot(vector, vector)),
      payload,
    }))
    .sort((a, b) => b.score - a.score)
    .slice(0, limit);
}
