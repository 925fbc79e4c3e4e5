import type { Server, UntypedServiceImplementation } from "@grpc/grpc-js";
import { loadSync, type PackageDefinition } from "@grpc/proto-loader";
import { HealthImplementation, protoPath } from "grpc-health-check";
import type { Models } from "../../models/models.ts";
import { serviceName } from "./definition.ts";

/** For reflection. */
export const healthProtocol: PackageDefinition = loadSync(protoPath);

/** How often watchers are told of a change. */
const lookMs = 500;

type Status = "SERVING" | "NOT_SERVING";

/** The health checking protocol: of the server (""), and of its inference service. @returns a function that ends it. */
export function addHealth(server: Pick<Server, "addService">, models: Models): () => void {
  const statusNow = (): Status => (models.status === "ok" ? "SERVING" : "NOT_SERVING");
  let known = statusNow();
  const health = new HealthImplementation({ "": known, [serviceName]: known });
  const look = (): void => {
    if (known === statusNow()) return;
    known = statusNow();
    for (const name of ["", serviceName]) health.setStatus(name, known);
  };
  health.addToServer({
    addService(service: Parameters<Server["addService"]>[0], handlers: UntypedServiceImplementation) {
      const entries = Object.entries(handlers).map(([name, handler]) => [name, fresh(handler)] as const);
      server.addService(service, Object.fromEntries(entries));
    },
  });
  // Check replies with the current state.
  function fresh(method: UntypedServiceImplementation[string]): UntypedServiceImplementation[string] {
    return ((...words: readonly unknown[]) => {
      look();
      (method as (...words: readonly unknown[]) => void)(...words);
    }) as typeof method;
  }
  const timer = setInterval(look, lookMs).unref();
  return () => {
    clearInterval(timer);
    look();
  };
}
