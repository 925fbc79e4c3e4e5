import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Problem } from "../problems/problem.ts";
import type { Caller } from "../tenants/caller.ts";
import type { Callers } from "../tenants/callers.ts";

const known = new WeakMap<FastifyRequest, Caller>();
const vouched = new WeakMap<IncomingMessage, Caller | undefined>();

/** A request that the server makes for a caller whose key it has seen before: it has none to show. */
export function vouchFor(request: IncomingMessage, caller: Caller | undefined): void {
  vouched.set(request, caller);
}

/** Who sent a request; undefined where callers are not told apart. */
export const callerOf = (request: FastifyRequest): Caller | undefined => known.get(request);

/** Paths of routes that need no key, or more than an ordinary one. */
export interface GuardedPaths {
  readonly open: ReadonlySet<string>;
  /** For operators only: they show or change more than a tenant's own data. */
  readonly operators: ReadonlySet<string>;
}

/** Refuses requests without a valid key and notes who sent the others. A reply says if its request was moved to a lower lane. */
export function checkCallers(app: FastifyInstance, callers: Callers, paths: GuardedPaths): void {
  if (callers.isOpenToAll) return;
  const { prefix } = app;
  /** Replies to operators that may last, such as the page's events. */
  const open = new Map<FastifyReply, Caller>();
  callers.onKeys(() => {
    for (const [{ raw }, caller] of open) if (caller.isGone || !caller.isOperator) raw.destroy();
  });
  app.addHook("onRequest", (request, reply, done) => {
    const path = request.routeOptions.url?.slice(prefix.length);
    if (path !== undefined && paths.open.has(path)) return done();
    try {
      const caller = vouched.has(request.raw)
        ? vouched.get(request.raw)
        : callers.identify((name) => request.headers[name]);
      if (caller !== undefined) {
        if (path !== undefined && paths.operators.has(path)) {
          if (!caller.isOperator) throw forOperators(path);
          open.set(reply, caller);
          reply.raw.once("close", () => open.delete(reply));
        }
        known.set(request, caller);
      }
      done();
    } catch (error) {
      done(error as Problem);
    }
  });
  app.addHook("onSend", (request, reply, _payload, done) => {
    const lane = known.get(request)?.loweredTo;
    if (lane !== undefined) reply.header("x-sheaf-priority", lane);
    done();
  });
}

/** Whether a request to an open route comes from an operator; always true without keys. */
export function isOperator(callers: Callers, { headers }: FastifyRequest): boolean {
  try {
    return callers.identify((name) => headers[name])?.isOperator ?? true;
  } catch {
    return false;
  }
}

/** Assigns a request to the user that its body names. @throws {Problem} 422 */
export function nameUser(request: FastifyRequest, user: unknown): void {
  const caller = known.get(request)?.ofUser?.(user);
  if (caller !== undefined) known.set(request, caller);
}

const forOperators = (path: string): Problem =>
  new Problem("FORBIDDEN", `${path} is for operators: use a key that has "operator": true.`);
