import { status as grpc, Metadata, type StatusObject } from "@grpc/grpc-js";
import { BatcherError } from "sheaf";
import { problemOf, type Problem } from "../../../problems/problem.ts";

/** The status of gRPC for each status of HTTP that an error can have: /infer and gRPC refuse the same for the same reason. */
const codes = {
  400: grpc.INVALID_ARGUMENT,
  401: grpc.UNAUTHENTICATED,
  403: grpc.PERMISSION_DENIED,
  404: grpc.NOT_FOUND,
  405: grpc.UNIMPLEMENTED,
  408: grpc.DEADLINE_EXCEEDED,
  413: grpc.RESOURCE_EXHAUSTED,
  415: grpc.UNIMPLEMENTED,
  421: grpc.PERMISSION_DENIED,
  422: grpc.INVALID_ARGUMENT,
  429: grpc.RESOURCE_EXHAUSTED,
  431: grpc.RESOURCE_EXHAUSTED,
  500: grpc.INTERNAL,
  502: grpc.INTERNAL,
  503: grpc.UNAVAILABLE,
  504: grpc.DEADLINE_EXCEEDED,
} as const satisfies Readonly<Record<number, grpc>>;

/** A status missing from the table is a bug of the server. */
const codeOf = (status: number): grpc => (codes as Readonly<Record<number, grpc>>)[status] ?? grpc.INTERNAL;

/** As a column of the errors' table shows it: `INVALID_ARGUMENT`. */
export const statusNameOf = ({ status }: Pick<Problem, "status">): string => grpc[codeOf(status)];

export const nameOfCode = (code: number): string => grpc[code] ?? "UNKNOWN";

/** The message of a problem in the words of gRPC: its callers have a deadline, and no headers. */
export const detailsOf = ({ cause, message }: Problem): string =>
  cause instanceof BatcherError && cause.code === "TIMEOUT" ? problemOf(cause, "the call's deadline").message : message;

/** How a call ends with this problem. When to come back stands in the metadata, also as gRPC's retry policies read it. */
export function statusOf(problem: Problem): StatusObject {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(problem.headers)) {
    // Of the connection, not of the call: HTTP/2 has no such header.
    if (name !== "connection") metadata.set(name, value);
    if (name === "retry-after-ms") metadata.set("grpc-retry-pushback-ms", value);
  }
  // grpc-js writes it with encodeURI, which throws at half a surrogate pair.
  return {
    code: codeOf(problem.status),
    details: detailsOf(problem).replaceAll(/\p{Surrogate}/gu, "\uFFFD"),
    metadata,
  };
}
