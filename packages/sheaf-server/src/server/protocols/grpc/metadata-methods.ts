import type { handleUnaryCall } from "@grpc/grpc-js";
import type { FastifyBaseLogger } from "fastify";
import type { Models } from "../../models/models.ts";
import type { ServedModel } from "../../models/served-model.ts";
import { problemOf } from "../../../problems/problem.ts";
import { logProblem } from "../../../observe/log.ts";
import {
  checkVersion,
  configOf,
  isReady,
  metadataOf,
  repositoryIndex,
  serverMetadata,
  statisticsOf,
} from "../kserve/model.ts";
import { malformed } from "../kserve/tensor-data.ts";
import { first } from "./calls.ts";
import { decode } from "./definition.ts";
import { decoded } from "./infer-request.ts";
import { statusOf } from "./status.ts";

interface NamedVersion {
  readonly name: string;
  readonly version: string;
}

type Method = handleUnaryCall<Buffer, object>;

/** The methods that run nothing: descriptions and statistics of the server and its models. */
export function metadataMethods(models: Models, log: FastifyBaseLogger): Readonly<Record<string, Method>> {
  const named = ({ name, version }: NamedVersion): ServedModel => {
    const model = models.describe(name, "name");
    checkVersion(name, model, version || undefined);
    return model;
  };
  const descriptions: Readonly<Record<string, Description>> = {
    ServerLive: () => ({ live: true }),
    ServerReady: () => ({ ready: models.status === "ok" }),
    ServerMetadata: () => serverMetadata(models),
    ModelReady: ({ name, version }: NamedVersion) => {
      const deployment = models.find(name, "name");
      checkVersion(name, deployment.current, version || undefined);
      return { ready: isReady(models, deployment) };
    },
    ModelMetadata: (message: NamedVersion) => metadataOf(named(message)),
    ModelConfig: (message: NamedVersion) => ({ config: configOf(named(message)) }),
    ModelStatistics: (message: NamedVersion) => statisticsOf(message.name === "" ? models.all : [named(message)]),
    RepositoryIndex: async ({ ready }: { readonly ready: boolean }) => ({
      models: await repositoryIndex(models, { readyOnly: ready }),
    }),
  };
  return Object.fromEntries(
    Object.entries(descriptions).map(([name, describe]) => [name, methodOf(name, describe, log)]),
  );
}

/** They hold a name and a version. */
const mostBytes = 65_536;

type Description = (message: never) => object | Promise<object>;

function methodOf(name: string, describe: Description, log: FastifyBaseLogger): Method {
  const described = async (request: Buffer): Promise<object> => {
    if (request.length > mostBytes) throw malformed(`A ${name}Request must have at most ${mostBytes} bytes.`);
    return describe(decoded(`The message is not a ${name}Request`, () => decode(name, request)) as never);
  };
  return ({ request, metadata }, reply) => {
    described(request).then(
      (message) => reply(null, message),
      (error: unknown) => {
        const problem = problemOf(error);
        logProblem({ id: first(metadata, "x-request-id") ?? "", headers: {}, log }, problem);
        reply(statusOf(problem));
      },
    );
  };
}
