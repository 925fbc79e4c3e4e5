import { Metadata, ServerInterceptingCall, type ServerInterceptor } from "@grpc/grpc-js";
import { hostCheck } from "../../../http/allowed-hosts.ts";
import { Problem, problemOf, retryIn } from "../../../problems/problem.ts";
import { requestId } from "../../../http/request-id.ts";
import type { Settings } from "../../../settings/settings.ts";
import type { Caller } from "../../../tenants/caller.ts";
import type { Callers } from "../../../tenants/callers.ts";
import type { Connections } from "./connections.ts";
import { statusOf } from "./status.ts";

/** Methods that need no key, as the health routes of HTTP. */
export const isOpenMethod = (path: string): boolean =>
  path.startsWith("/grpc.health.") || /\/Server(?:Live|Ready)$/.test(path);

const known = new WeakMap<Metadata, Caller>();

/** The caller; undefined if the server does not distinguish callers. */
export const callerOf = ({ metadata }: { readonly metadata: Metadata }): Caller | undefined => known.get(metadata);

/**
 * Every call, before its message is read: refused without the key, or where as many are open as there may be connections.
 * Its status carries its id.
 */
export function callGuard(settings: Settings, callers: Callers, connections: () => Connections): ServerInterceptor {
  const { maxConnections } = settings;
  const hostRefusal = hostCheck(settings);
  const refusal = (path: string, authority: string, metadata: Metadata): Problem | undefined => {
    const wrongHost = hostRefusal?.(authority);
    if (wrongHost !== undefined) return wrongHost;
    if (!callers.isOpenToAll && !isOpenMethod(path)) {
      try {
        const caller = callers.identify((name) => first(metadata, name), "as metadata,");
        if (caller !== undefined) known.set(metadata, caller);
      } catch (error) {
        return problemOf(error);
      }
    }
    if (connections().calls < maxConnections) return undefined;
    const message = `${maxConnections} calls are open (MAX_CONNECTIONS); retry later.`;
    return new Problem("QUEUE_FULL", message, { headers: retryIn(1000) });
  };
  return ({ path }, call) => {
    let id = "";
    const intercepted = new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata: (metadata, proceed) => {
            id = requestId({ headers: { "x-request-id": first(metadata, "x-request-id") } });
            metadata.set("x-request-id", id);
            const refused = refusal(path, call.getHost(), metadata);
            if (refused === undefined) proceed(metadata);
            else intercepted.sendStatus(statusOf(refused));
          },
        }),
      sendStatus: (status, next) => {
        const metadata = status.metadata ?? new Metadata();
        metadata.set("x-request-id", id);
        next({ ...status, metadata });
      },
    });
    return intercepted;
  };
}

/** The first value of a name, where it is a text. */
export function first(metadata: Metadata, name: string): string | undefined {
  const [value] = metadata.get(name);
  return typeof value === "string" ? value : undefined;
}
