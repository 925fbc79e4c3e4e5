import { join } from "node:path";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";
import { fromJSON, type PackageDefinition } from "@grpc/proto-loader";
import protobuf, { type Root } from "protobufjs";

// Beside `dist` in the package too: the compiler copies no other files.
const protocolFile: string = join(
  import.meta.dirname,
  ..."../../../../src/server/protocols/grpc/inference.proto".split("/"),
);

/** The types of inference.proto, for code that reads a message itself. */
export const types: Root = new protobuf.Root().loadSync(protocolFile, { keepCase: true });

/** The same as a definition: from those, as to parse the file again takes milliseconds. Names stay as they are there; 64-bit numbers are texts. */
export const protocol: PackageDefinition = fromJSON(types.toJSON(), {
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
