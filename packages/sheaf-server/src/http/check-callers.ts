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

/** Paths, as routes have them, that not every key opens, and those that need none. */
export interface GuardedPaths {
  readonly open: ReadonlySet<string>;
  /** Of an operator: they show or change more than is a tenant's own. */
  readonly operators: ReadonlySet<string>;
}

/** Refuses requests without a valid key, and notes who sent the others; replies say to which lane one was lowered. */
export function checkCallers(app: FastifyInstance, callers: Callers, paths: GuardedPaths): void {
  if (callers.isOpenToAll) return;
  const { prefix } = app;
  /** Replies to operators, which may last, such as the page's events. */
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

/** Whether a request to an open route comes from an operator, or where there are no keys. */
export function isOperator(callers: Callers, { headers }: FastifyRequest): boolean {
  try {
    return callers.identify((name) => headers[name])?.isOperator ?? true;
  } catch {
    return false;
  }
}

/** A request names its user only in its body: it is that one's from now on. @throws {Problem} 422 */
export function nameUser(request: FastifyRequest, user: unknown): void {
  const caller = known.get(request)?.ofUser?.(user);
  if (caller !== undefined) known.set(request, caller);
}

const forOperators = (path: string): Problem =>
  new Problem("FORBIDDEN", `${path} is for operators: use a key that has "operator": true.`);
