import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Busboy, type BusboyHeaders } from "@fastify/busboy";
import type { FastifyRequest } from "fastify";
import { longUploads } from "../../http/client-errors.ts";
import { clientClosedRequest, invalid, Problem } from "../../problems/problem.ts";
import type { Settings } from "../../settings/settings.ts";
import { nowS } from "./batches.ts";
import { longestKeepS, type Sender, type StoredFile } from "./records.ts";
import type { Store } from "./store.ts";

const shortestKeepS = 3600;
const longestFilename = 255;

/** Takes a file from a form of OpenAI's clients, straight to the disk. @throws {Problem} */
export async function receiveFile(
  { raw, headers }: FastifyRequest,
  store: Store,
  sender: Sender,
  { uploadTimeoutMs }: Settings,
): Promise<StoredFile> {
  const id = store.newId("file");
  const path = store.pathOf(id);
  const form = formParser(headers);
  const fields = new Map<string, string>();
  let file: { readonly name: string; readonly content: Readable; readonly written: Promise<void> } | undefined;
  let bytes = 0;
  const arriving = (more: number): unknown =>
    store.arriving.set(sender.tenant, (store.arriving.get(sender.tenant) ?? 0) + more);
  let stalled = setTimeout(() => {}, 0);
  const moved = (): void => {
    clearTimeout(stalled);
    const late = (): unknown =>
      raw.destroy(new Problem("REQUEST_TIMEOUT", `Nothing came for ${uploadTimeoutMs} ms (UPLOAD_TIMEOUT_MS).`));
    stalled = setTimeout(late, uploadTimeoutMs).unref();
  };
  const full = (more: number): Problem | undefined => {
    const reason = store.fullFor(sender, more);
    return reason === undefined ? undefined : new Problem("STORAGE_FULL", reason, { headers: closing });
  };
  form.on("field", (name: string, value: string) => fields.set(name, value));
  form.on("file", (name: string, content: Readable, filename: string) => {
    if (name !== "file" || file !== undefined) return void content.resume();
    content.on("data", (piece: Buffer) => {
      bytes += piece.length;
      arriving(piece.length);
      const problem = full(0);
      if (problem !== undefined) content.destroy(problem);
    });
    const written = pipeline(content, createWriteStream(path, { mode: 0o600, flush: true }));
    // Reported below, or when the form ends.
    written.catch((error: Error) => form.destroy(error));
    file = { name: filename, content, written };
  });
  try {
    const announced = full(Number(headers["content-length"] ?? 0));
    if (announced !== undefined) throw announced;
    longUploads.add(raw.socket);
    moved();
    raw.on("data", moved);
    await pipeline(raw, form as unknown as NodeJS.WritableStream);
    await file?.written;
    const keepS = readFields(fields, file);
    const createdAt = nowS();
    const stored: StoredFile = {
      id,
      sender,
      bytes,
      filename: file!.name.slice(0, longestFilename),
      purpose: "batch",
      createdAt,
      expiresAt: createdAt + keepS,
      endsAtMs: store.nowMs + 1000 * keepS,
    };
    await store.put(stored);
    return stored;
  } catch (error) {
    // An aborted parser does not end it.
    file?.content.destroy();
    await file?.written.catch(() => undefined);
    await rm(path, { force: true });
    throw problemOfUpload(error, raw.destroyed);
  } finally {
    longUploads.delete(raw.socket);
    clearTimeout(stalled);
    arriving(-bytes);
  }

  function formParser(given: FastifyRequest["headers"]): InstanceType<typeof Busboy> {
    try {
      return new Busboy({
        headers: given as BusboyHeaders,
        limits: { files: 1, fields: 16, fieldSize: 1024, parts: 17 },
      });
    } catch {
      throw new Problem(
        "UNSUPPORTED_MEDIA_TYPE",
        "Send the file as a form: multipart/form-data with file and purpose.",
      );
    }
  }
}

const closing = { connection: "close" };

/** @returns the lifetime of the file in seconds. */
function readFields(fields: ReadonlyMap<string, string>, file: object | undefined): number {
  const purpose = fields.get("purpose");
  if (purpose !== "batch") throw invalid("purpose", '"batch", the only purpose of files here', purpose);
  if (file === undefined) throw invalid("file", "a file of the form", undefined);
  const anchor = fields.get("expires_after[anchor]");
  const seconds = fields.get("expires_after[seconds]");
  return readKeep(
    "expires_after",
    anchor === undefined && seconds === undefined ? undefined : { anchor, seconds: Number(seconds) },
  );
}

/** How long a file is kept, as OpenAI's clients say it. @throws {Problem} 422 */
export function readKeep(path: string, given: unknown): number {
  if (given === undefined || given === null) return longestKeepS;
  const { anchor, seconds } = given as { readonly anchor?: unknown; readonly seconds?: unknown };
  if (anchor !== "created_at") throw invalid(`${path}.anchor`, '"created_at"', anchor);
  if (!Number.isInteger(seconds) || Number(seconds) < shortestKeepS || Number(seconds) > longestKeepS)
    throw invalid(`${path}.seconds`, `an integer from ${shortestKeepS} to ${longestKeepS}`, seconds);
  return Number(seconds);
}

/** A full disk if the system reports one; a truncated form is the client's fault. */
export function problemOfUpload(error: unknown, isGone: boolean): unknown {
  if (error instanceof Problem) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  if (isDiskFull(code))
    return new Problem("STORAGE_FULL", "The disk of the folder of batches is full.", { headers: closing });
  if (isGone) return clientClosedRequest();
  return code === undefined
    ? new Problem("BAD_REQUEST", `The form cannot be read: ${message}.`, { headers: closing })
    : error;
}

export const isDiskFull = (code: string | undefined): boolean =>
  code === "ENOSPC" || code === "EDQUOT" || code === "EFBIG";
