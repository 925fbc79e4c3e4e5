import { status, type Server, type ServerDuplexStream } from "@grpc/grpc-js";
import type { PackageDefinition } from "@grpc/proto-loader";
import descriptor from "protobufjs/ext/descriptor/index.js";
import { costs } from "../../../shared/costs.ts";

const { FileDescriptorProto } = descriptor;

type Services = Pick<Server, "addService">;

/** Requests in a call of reflection: a reply is a thousand times as long, and is sent whether or not it is read. */
export const bounded = (services: Services): Services => ({
  addService(definition, handlers) {
    const answer = handlers["ServerReflectionInfo"] as (call: ServerDuplexStream<object, object>) => void;
    const ServerReflectionInfo = (call: ServerDuplexStream<object, object>): void => {
      let asked = 0;
      answer(call);
      const [answered] = call.listeners("data") as ((message: object) => void)[];
      call.removeAllListeners("data").on("data", (message: object) => {
        if (++asked <= costs.reflectionsPerCall) answered!(message);
        else if (asked === costs.reflectionsPerCall + 1)
          call.emit("error", {
            code: status.RESOURCE_EXHAUSTED,
            details: `A call of reflection may ask ${costs.reflectionsPerCall} questions; open another one.`,
          });
      });
    };
    services.addService(definition, { ...handlers, ServerReflectionInfo });
  },
});

interface MessageType {
  name?: string | null;
  readonly options?: { readonly mapEntry?: boolean | null } | null;
  readonly nestedType?: MessageType[] | null;
  readonly field?: { typeName?: string | null }[] | null;
}

/**
 * The part of a definition that reflection may show. protobufjs calls the entries of a map `parameters` by the name `Parameters`;
 * Go's tools, grpcurl among them, refuse a file in which they are not called `ParametersEntry`.
 */
export function reflected(definition: PackageDefinition): PackageDefinition {
  const entries = Object.entries(definition).map(([name, entry]) => {
    const { fileDescriptorProtos: files } = entry as { readonly fileDescriptorProtos?: readonly Buffer[] };
    return [name, files === undefined ? entry : { ...entry, fileDescriptorProtos: files.map(withEntryNames) }] as const;
  });
  return Object.fromEntries(entries) as PackageDefinition;
}

function withEntryNames(bytes: Buffer): Buffer {
  const file = FileDescriptorProto.decode(bytes) as unknown as { readonly messageType: MessageType[] };
  for (const message of file.messageType) nameEntries(message);
  return Buffer.from(FileDescriptorProto.encode(file as never).finish());
}

function nameEntries(message: MessageType): void {
  for (const nested of message.nestedType ?? []) {
    nameEntries(nested);
    if (nested.options?.mapEntry !== true) continue;
    const wrong = nested.name;
    nested.name = `${wrong}Entry`;
    for (const field of message.field ?? []) if (field.typeName === wrong) field.typeName = nested.name;
  }
}
