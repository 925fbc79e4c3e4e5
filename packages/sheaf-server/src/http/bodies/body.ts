import { isUtf8 } from "node:buffer";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { Problem } from "../../problems/problem.ts";
import { changedValues } from "./changed-values.ts";
import { JsonBounds, mayExceed } from "./json-bounds.ts";
import { bodyReader, type BodyDone } from "./read-body.ts";

/**
 * Delivers bodies as bytes; each route decides how to read them, so that a large array of numbers is never parsed twice. Only
 * `application/json`, in UTF-8 and not compressed.
 */
export function takeJsonAsBytes(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  const read = bodyReader(app);
  app.addContentTypeParser("application/json", (request, payload, done: BodyDone) => {
    const problem = compressed(request) ?? otherCharset(request);
    if (problem === undefined) read(request, payload, done);
    else done(problem);
  });
}

/** Also takes bodies without a content type as JSON, for clients that send none. */
export function takeUntyped(app: FastifyInstance): void {
  const read = bodyReader(app);
  app.addContentTypeParser("*", (request, payload, done: BodyDone) => {
    const problem = compressed(request) ?? otherType(request);
    if (problem === undefined) read(request, payload, done);
    else done(problem);
  });
}

function otherType({ headers }: FastifyRequest): Problem | undefined {
  if (headers["content-type"] === undefined) return undefined;
  const message = "Send the body as JSON, with the header content-type: application/json.";
  return new Problem("UNSUPPORTED_MEDIA_TYPE", message);
}

/** Uses schemas for /openapi.json only: routes check bodies and write replies themselves. */
export function showSchemasOnly(app: FastifyInstance): void {
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => (value) => JSON.stringify(value));
}

/** 415 for a body that is compressed, whatever its content type. */
export function compressed({ headers }: FastifyRequest): Problem | undefined {
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding.toLowerCase() === "identity") return undefined;
  const message = `Send the body uncompressed, without the header content-encoding: ${encoding.slice(0, 40)}.`;
  return new Problem("UNSUPPORTED_MEDIA_TYPE", message);
}

function otherCharset({ headers }: FastifyRequest): Problem | undefined {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(headers["content-type"] ?? "")?.[1] ?? "utf-8";
  if (charset.toLowerCase() === "utf-8" || charset.toLowerCase() === "utf8") return undefined;
  return new Problem("UNSUPPORTED_MEDIA_TYPE", `Send the body in UTF-8: charset ${charset} is not accepted.`);
}

/**
 * The body as JSON.
 * @throws {Problem} 400 with the place of the mistake; 422 for more keys, arrays or levels than `costs` allow, found before it is parsed.
 */
export const jsonOf = (body: unknown): unknown => parsed(bytesOf(body));

/**
 * The same, for JSON that is passed on after parsing: values that JavaScript would change are faults. Those in up to `mostElements`
 * elements of a list are returned by the element's path, for those elements' callers only.
 * @throws {Problem} 422 for any other.
 */
export function exactJsonOf(
  body: unknown,
  mostElements?: number,
): { readonly json: unknown; readonly changed: ReadonlyMap<string, Problem> } {
  const bytes = bytesOf(body);
  const json = parsed(bytes);
  return { json, changed: changedValues(bytes, json, "", mostElements) };
}

function bytesOf(body: unknown): Buffer {
  if (!Buffer.isBuffer(body) || body.length === 0)
    throw new Problem("NOT_JSON", "The body is empty; send JSON, with the header content-type: application/json.");
  if (!isUtf8(body)) throw new Problem("NOT_JSON", "The body is not UTF-8.");
  return body;
}

function parsed(bytes: Buffer): unknown {
  if (mayExceed(bytes)) new JsonBounds().check(bytes, "");
  try {
    return JSON.parse(bytes.toString("utf8")) as unknown;
  } catch (error) {
    throw new Problem("NOT_JSON", `The body is not JSON: ${(error as Error).message}`, { cause: error });
  }
}
