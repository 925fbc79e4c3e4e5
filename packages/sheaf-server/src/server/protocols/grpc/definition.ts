import { join } from "node:path";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";
import { loadSync, type PackageDefinition } from "@grpc/proto-loader";

// Beside `dist` in the package too: the compiler copies no other files.
export const protocolFile: string = join(
  import.meta.dirname,
  ..."../../../../src/server/protocols/grpc/inference.proto".split("/"),
);

/** The types of inference.proto. Names stay as they are there; 64-bit numbers are texts. */
export const protocol: PackageDefinition = loadSync(protocolFile, {
  keepCase: true,
  longs: String,
  enums: String,
  defaults: true,
});

export const serviceName = "inference.GRPCInferenceService";

type Method = MethodDefinition<Buffer, object>;

/**
 * The service, whose handlers get each message as its bytes: they decode it themselves, and say with a status what is
 * wrong with it.
 */
export const service: ServiceDefinition & Readonly<Record<string, Method>> = Object.fromEntries(
  Object.entries(protocol[serviceName] as ServiceDefinition).map(([name, method]) => [
    name,
    { ...method, requestDeserialize: (bytes: Buffer) => bytes },
  ]),
);

/** The message of a request, by the name of its method. @throws {Error} where the bytes are not one. */
export const decode = (method: string, bytes: Buffer): unknown =>
  (protocol[serviceName] as ServiceDefinition)[method]!.requestDeserialize(bytes);
