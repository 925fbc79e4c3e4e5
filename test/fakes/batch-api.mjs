// A provider's batch API on this machine, with the shapes of OpenAI and of Mistral, and with faults on request. It counts the lines that it would bill.
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { vectorOf } from "./embedding-api.mjs";

/** Listens on a free port. `fault(kind, n)` may name what happens to the n-th request of its kind: a status (nothing is done), `{ done: status }` (it is done, the
 * reply says otherwise), `"reset"`, `"done-reset"`, `"late"` (the connection is lost, and it is done after that) or `"cut"` (half of a download). `outcome(n)` of the
 * n-th batch: `"completed"`, `"expired"` with half of its lines, `"failed"` or `"held"`, which ends only by a cancel. A text with the word `bad` fails. */
export async function batchApi({
  fault = () => undefined,
  outcome = () => "completed",
  runMs = 20,
  onRequest = () => undefined,
} = {}) {
  const files = new Map();
  const batches = new Map();
  const counts = {};
  const paid = new Map();
  let ids = 0;

  const server = createServer(async (request, response) => {
    const chunks = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch {
      return;
    }
    const path = request.url
      .replace(/\?.*/, "")
      .replace("/v1/batch/jobs", "/v1/batches")
      .replace(/^.openai/, "");
    const isMistral = request.url.startsWith("/v1/batch/jobs");
    const [, , thing, id, verb] = path.split("/");
    const kind = kindOf(request.method, thing, id, verb);
    const n = (counts[kind] = (counts[kind] ?? 0) + 1);
    const what = fault(kind, n);
    onRequest(kind, n);
    const query = new URL(request.url, "http://localhost").searchParams;
    const act = () => handle(kind, id, request, Buffer.concat(chunks), query, isMistral);
    if (typeof what === "number")
      return send(response, what, { error: { message: `The fake says ${what}.` } }, { "retry-after-ms": "20" });
    if (what === "reset" || what === "late") request.socket.destroy();
    if (what === "reset") return;
    if (what === "late") await sleep(30);
    const { status = 200, body, content } = await act();
    if (what === "late") return;
    if (what === "done-reset") return request.socket.destroy();
    if (what?.done) return send(response, what.done, { error: { message: "An internal error." } });
    if (content === undefined) return send(response, status, body);
    response.writeHead(200, { "content-type": "application/octet-stream" });
    if (what !== "cut") return response.end(content);
    response.write(content.subarray(0, content.length / 2), () => setTimeout(() => request.socket.destroy(), 5));
  });

  async function handle(kind, id, request, bytes, query, isMistral) {
    const missing = { status: 404, body: { error: { message: `There is no ${id}.` } } };
    if (kind === "upload") {
      const form = await new Response(bytes, {
        headers: { "content-type": request.headers["content-type"] },
      }).formData();
      const file = { id: `file-${++ids}`, text: await form.get("file").text() };
      files.set(file.id, file);
      return {
        body: {
          id: file.id,
          object: "file",
          bytes: bytes.length,
          filename: "f",
          purpose: "batch",
          created_at: 1,
          createdAt: 1,
          sample_type: "batch_request",
          source: "upload",
        },
      };
    }
    if (kind === "content") return files.has(id) ? { content: Buffer.from(files.get(id).text) } : missing;
    if (kind === "delete") return files.delete(id) ? { body: { id, object: "file", deleted: true } } : missing;
    if (kind === "list") {
      const all = [...batches.values()].reverse();
      const from = all.findIndex((batch) => batch.id === query.get("after")) + 1;
      // A page is short, so that clients have to turn it.
      const page = isMistral ? all : all.slice(from, from + 10);
      return {
        body: {
          object: "list",
          data: page.map((batch) => shown(batch, isMistral)),
          has_more: from + 10 < all.length,
          total: all.length,
        },
      };
    }
    if (kind === "create") {
      const { input_file_id, input_files: [file] = [input_file_id], endpoint, metadata } = JSON.parse(bytes);
      if (!files.has(file)) return { status: 400, body: { error: { message: `There is no file ${file}.` } } };
      const batch = { id: `batch-${++ids}`, file, endpoint, metadata, done: 0, failed: 0, status: "in_progress" };
      batches.set(batch.id, batch);
      batch.lines = files
        .get(file)
        .text.trim()
        .split("\n")
        .map((line) => JSON.parse(line));
      const how = outcome(batches.size, batch);
      if (how !== "held") setTimeout(() => end(batch, how), runMs);
      return { body: shown(batch, isMistral) };
    }
    const batch = batches.get(id);
    if (batch === undefined) return missing;
    if (kind === "cancel" && batch.status === "in_progress") end(batch, "cancelled");
    return { body: shown(batch, isMistral) };
  }

  function end(batch, how) {
    if (batch.status !== "in_progress") return;
    batch.status = how;
    if (how === "failed") return void (batch.reason = "The fake refuses this file.");
    const rows = { output: [], error: [] };
    const ran = how === "completed" ? batch.lines.length : Math.floor(batch.lines.length / 2);
    for (const [index, { custom_id, body }] of batch.lines.entries()) {
      if (index >= ran) {
        rows.error.push({
          custom_id,
          response: null,
          error: {
            code: "batch_expired",
            message: "This request could not be executed before the completion window expired.",
          },
        });
      } else if (/\bbad\b/.test(body.input)) {
        rows.error.push({
          custom_id,
          response: { status_code: 400, body: { error: { message: "The input is bad." } } },
          error: null,
        });
      } else {
        paid.set(body.input, (paid.get(body.input) ?? 0) + 1);
        rows.output.push({
          custom_id,
          response: { status_code: 200, body: { data: [{ index: 0, embedding: vectorOf(body.input) }] } },
          error: null,
        });
      }
    }
    [batch.done, batch.failed] = [rows.output.length, rows.error.length];
    for (const [name, own] of Object.entries(rows)) {
      if (own.length === 0) continue;
      // Out of order.
      const text = own
        .reverse()
        .map((row) => `${JSON.stringify(row)}\n`)
        .join("");
      files.set((batch[name] = `file-${++ids}`), { text });
    }
  }

  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => new Promise((resolve) => (server.close(resolve), server.closeAllConnections()));
  return { url: `http://127.0.0.1:${server.address().port}/v1`, files, batches, paid, counts, close };
}

function kindOf(method, thing, id, verb) {
  if (thing === "files") return method === "DELETE" ? "delete" : method === "POST" ? "upload" : "content";
  if (id === undefined) return method === "POST" ? "create" : "list";
  return verb === "cancel" ? "cancel" : "retrieve";
}

const mistralStatus = {
  in_progress: "RUNNING",
  completed: "SUCCESS",
  expired: "TIMEOUT_EXCEEDED",
  failed: "FAILED",
  cancelled: "CANCELLED",
};

function shown(
  { id, file, endpoint, metadata, status, done, failed, output = null, error = null, lines, reason },
  isMistral,
) {
  const total = lines?.length ?? 0;
  if (isMistral)
    return { id, object: "batch", input_files: [file], endpoint, metadata, status: mistralStatus[status], output_file: output, error_file: error, errors: reason ? [{ message: reason }] : [], created_at: 1, total_requests: total, completed_requests: done + failed, succeeded_requests: done, failed_requests: failed }; // prettier-ignore
  const errors = reason ? { object: "list", data: [{ message: reason }] } : null;
  return { id, object: "batch", input_file_id: file, endpoint, metadata, status, output_file_id: output, error_file_id: error, errors, completion_window: "24h", created_at: 1, request_counts: { total, completed: done, failed } }; // prettier-ignore
}

function send(response, status, body, headers = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}
