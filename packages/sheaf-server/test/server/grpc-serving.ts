import type { TestContext } from "node:test";
import { join } from "node:path";
import {
  Client,
  credentials,
  loadPackageDefinition,
  Metadata,
  status,
  type CallOptions,
  type ClientDuplexStream,
  type ServiceClientConstructor,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import type { ModelDefinition } from "../../dist/index.js";
import type { Settings } from "../../dist/settings/settings.js";
import { atEnd } from "../at-end.js";
import { serving, type Serving } from "./serving.js";

const file = join(import.meta.dirname, ..."../../src/server/protocols/grpc/inference.proto".split("/"));
const options = { keepCase: true, longs: String, enums: String, defaults: true };
const definitions = loadPackageDefinition(loadSync(file, options)) as unknown as {
  readonly inference: { readonly GRPCInferenceService: ServiceClientConstructor };
};
export const { service } = definitions.inference.GRPCInferenceService;

/** How a call ended: with a reply, or with a status and its message. */
export interface Ended {
  readonly reply: any;
  readonly status: string;
  readonly details: string;
  readonly trailers: Readonly<Record<string, unknown>>;
}

export interface GrpcServing extends Serving {
  readonly client: Client;
  /** One call of a method of the service. */
  call(method: string, message: unknown, metadata?: Record<string, string>, options?: CallOptions): Promise<Ended>;
  stream(metadata?: Record<string, string>): ClientDuplexStream<unknown, any>;
}

/** Serves over HTTP and gRPC, on free ports, until the test ends. */
export async function grpcServing(
  t: TestContext,
  models: readonly ModelDefinition[],
  settings: Partial<Settings> = {},
): Promise<GrpcServing> {
  const server = await serving(t, models, { grpcPort: 0, ...settings });
  const client = clientOf(t, server.grpcAddress!);
  const metadataOf = (values: Record<string, string>): Metadata => {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(values)) metadata.set(name, value);
    return metadata;
  };
  return Object.assign(server, {
    client,
    call: (method: string, message: unknown, metadata: Record<string, string> = {}, callOptions: CallOptions = {}) =>
      new Promise<Ended>((resolve) => {
        const { path, requestSerialize, responseDeserialize } = service[method]!;
        let reply: unknown;
        client
          .makeUnaryRequest(path, requestSerialize, responseDeserialize, message, metadataOf(metadata), callOptions, (_error, value) => (reply = value)) // prettier-ignore
          .on("status", (ended) =>
            setImmediate(() => resolve({ reply, status: status[ended.code]!, details: ended.details, trailers: ended.metadata.getMap() })),
          ); // prettier-ignore
      }),
    stream: (metadata: Record<string, string> = {}) => {
      const { path, requestSerialize, responseDeserialize } = service["ModelStreamInfer"]!;
      return client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadataOf(metadata));
    },
  });
}

export function clientOf(t: TestContext, address: string): Client {
  const client = new Client(address, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
  atEnd(t, async () => client.close());
  return client;
}

/** A request for `double` or `gated`, of so many rows of three numbers. */
export function floatsRequest(name: string, ...numbers: readonly number[]) {
  return {
    model_name: name,
    inputs: [{ name: "input", datatype: "FP32", shape: [numbers.length / 3, 3] }],
    raw_input_contents: [Buffer.from(Float32Array.from(numbers).buffer)],
  };
}

export const floatsOf = (reply: { readonly raw_output_contents: readonly Buffer[] }): number[] => {
  const [bytes] = reply.raw_output_contents;
  return Array.from({ length: bytes!.length / 4 }, (_, i) => bytes!.readFloatLE(4 * i));
};
