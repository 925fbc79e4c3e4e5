import type { handleUnaryCall } from "@grpc/grpc-js";
import type { FastifyBaseLogger } from "fastify";
import type { Models } from "../../models/models.ts";
import type { ServedModel } from "../../contract/served-model.ts";
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

interface OfModel {
  readonly name: string;
  readonly version: string;
}

type Method = handleUnaryCall<Buffer, object>;

/** The methods that run nothing: descriptions and statistics of the server and its models. */
export function metadataMethods(models: Models, log: FastifyBaseLogger): Readonly<Record<string, Method>> {
  const named = ({ name, version }: OfModel): ServedModel => {
    const model = models.describe(name, "name");
    checkVersion(name, model, version || undefined);
    return model;
  };
  const answers: Readonly<Record<string, Answer>> = {
    ServerLive: () => ({ live: true }),
    ServerReady: () => ({ ready: models.status === "ok" }),
    ServerMetadata: () => serverMetadata(models),
    ModelReady: ({ name, version }: OfModel) => {
      const deployment = models.find(name, "name");
      checkVersion(name, deployment.current, version || undefined);
      return { ready: isReady(models, deployment) };
    },
    ModelMetadata: (message: OfModel) => metadataOf(named(message)),
    ModelConfig: (message: OfModel) => ({ config: configOf(named(message)) }),
    ModelStatistics: (message: OfModel) => statisticsOf(message.name === "" ? models.all : [named(message)]),
    RepositoryIndex: async ({ ready }: { readonly ready: boolean }) => ({
      models: await repositoryIndex(models, { readyOnly: ready }),
    }),
  };
  return Object.fromEntries(Object.entries(answers).map(([name, answer]) => [name, answering(name, answer, log)]));
}

/** They hold a name and a version. */
const mostBytes = 65_536;

type Answer = (message: never) => object | Promise<object>;

function answering(name: string, answer: Answer, log: FastifyBaseLogger): Method {
  const answered = async (request: Buffer): Promise<object> => {
    if (request.length > mostBytes) throw malformed(`A ${name}Request must have at most ${mostBytes} bytes.`);
    return answer(decoded(`The message is not a ${name}Request`, () => decode(name, request)) as never);
  };
  return ({ request, metadata }, reply) => {
    answered(request).then(
      (message) => reply(null, message),
      (error: unknown) => {
        const problem = problemOf(error);
        logProblem({ id: first(metadata, "x-request-id") ?? "", headers: {}, log }, problem);
        reply(statusOf(problem));
      },
    );
  };
}
