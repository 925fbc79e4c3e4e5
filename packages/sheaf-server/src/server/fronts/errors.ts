import { describeError, rebuildError, type WireError } from "sheaf/internal/nats";
import { Problem, type ProblemCode } from "../../problems/problem.ts";

/** An error for the other process. A refusal goes without its stack and cause, which nobody would read. */
export function wireErrorOf(error: unknown): WireError {
  if (!(error instanceof Problem)) return describeError(error);
  const { name, message, code, status, param, headers } = error;
  const plain = { code, status, ...(param !== null && { param }), headers: JSON.stringify(headers) };
  const cause = status < 500 ? undefined : describeError(error.cause ?? error);
  return { name, message, plain, cause };
}

export function errorOf(wire: WireError): Error {
  if (wire.name !== "Problem") return rebuildError(wire);
  const { code, status, param, headers } = wire.plain as Readonly<Record<string, string>>;
  return new Problem(code as ProblemCode, wire.message, {
    status: Number(status),
    param,
    headers: JSON.parse(headers!) as Record<string, string>,
    cause: wire.cause && rebuildError(wire.cause),
  });
}
