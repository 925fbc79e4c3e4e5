import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { jsonOf } from "../../../http/bodies/body.ts";
import { callOptionsOf } from "../../../http/call-options.ts";
import { checkElements } from "../../codec/result-faults.ts";
import { commaSeparated, type JsonParts } from "../../codec/json-bytes.ts";
import { logProblem } from "../../../observe/log.ts";
import type { ServedModel } from "../../models/served-model.ts";
import type { Models } from "../../models/models.ts";
import { problemOf } from "../../../problems/problem.ts";
import { sendProblem } from "../../../http/replies.ts";
import { refuseUnread } from "../requests.ts";
import { headerLength, takeBinary } from "./binary-body.ts";
import { inferTensors, type TensorReply } from "./infer.ts";
import { checkVersion, configOf, isReady, metadataOf, repositoryIndex, serverMetadata, statisticsOf } from "./model.ts";
import { versionOf } from "./model.ts";
import { described } from "../../../http/schema/route-schema.ts";
import { jsonOrBinary, splitBody } from "./request.ts";
import * as schemas from "./schemas.ts";
import { bytesOf, jsonOfData } from "./tensor-data.ts";
import { checkReplyBytes, jsonInTurns, sendJson } from "../send-json.ts";
import { tellTruncated } from "../truncation.ts";

/**
 * The Open Inference Protocol (KServe v2) for every model, with the binary tensor extension and the further routes of Triton's
 * clients: https://github.com/kserve/open-inference-protocol. Rows of the batch axis are items.
 */
export async function kserveRoutes(app: FastifyInstance, models: Models): Promise<void> {
  await app.register(async (v2) => {
    takeBinary(v2);
    v2.setErrorHandler((error, request, reply) => {
      const problem = problemOf(error);
      logProblem(request, problem);
      sendProblem(reply, problem);
    });
    v2.get("/v2", { schema: schemas.server }, () => serverMetadata(models));
    v2.get("/v2/health/live", { schema: schemas.live, logLevel: "warn" }, () => ({ live: true }));
    v2.get("/v2/health/ready", { schema: schemas.ready, logLevel: "warn" }, (_request, reply) => {
      const ready = models.status === "ok";
      if (models.status === "warming") reply.header("retry-after", "1");
      return reply.code(ready ? 200 : 503).send({ ready });
    });
    v2.post(
      "/v2/repository/index",
      described(() => schemas.index(models)),
      ({ body }) => repositoryIndex(models, { readyOnly: readIndexRequest(body) }),
    );
    v2.get("/v2/models/stats", { schema: schemas.allStatistics }, () => statisticsOf(models.all));
    for (const versioned of [false, true]) {
      const path = versioned ? "/v2/models/:model/versions/:version" : "/v2/models/:model";
      const named = (request: FastifyRequest): ServedModel => {
        const { model: name, version } = request.params as VersionPath;
        const model = models.describe(name, "model");
        checkVersion(name, model, version);
        return model;
      };
      const about = { models, versioned };
      v2.get(path, described(() => schemas.model(about)), (request) => metadataOf(named(request))); // prettier-ignore
      v2.get(`${path}/config`, described(() => schemas.config(about)), (request) => configOf(named(request))); // prettier-ignore
      v2.get(
        `${path}/stats`,
        described(() => schemas.statistics(about)),
        (request) => statisticsOf([named(request)]),
      );
      v2.get(`${path}/ready`, { ...described(() => schemas.modelReady(about)), logLevel: "warn" }, (request, reply) => {
        const { model: name, version } = request.params as VersionPath;
        const deployment = models.find(name, "model");
        checkVersion(name, deployment.current, version);
        const ready = isReady(models, deployment);
        return reply.code(ready ? 200 : 503).send({ name, ready });
      });
      const take = (request: FastifyRequest): ServedModel => {
        const { model: name, version } = request.params as VersionPath;
        const model = models.take(name, "model");
        checkVersion(name, model, version);
        return model;
      };
      v2.post(`${path}/infer`, { ...described(() => schemas.infer(about)), ...refuseUnread(take) }, (request, reply) =>
        infer(take(request), request, reply),
      );
    }
  });
}

interface VersionPath {
  readonly model: string;
  readonly version?: string;
}

/** Whether only ready models are asked for. Clients send an object, or nothing at all. */
const readIndexRequest = (body: unknown): boolean =>
  Buffer.isBuffer(body) && body.length > 0 && schemas.indexBody.read(jsonOf(body), "").ready === true;

async function infer(model: ServedModel, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { header, binary } = splitBody(request, model);
  const options = callOptionsOf(request, model.settings);
  const asked = { header, isBinary: false, ...jsonOrBinary(binary) };
  const { id, outputs, results } = await inferTensors(model, asked, options);
  tellTruncated(reply, results);
  return sendOutputs(reply, { model, id, outputs });
}

async function sendOutputs(
  reply: FastifyReply,
  { model, id, outputs }: Omit<TensorReply, "results"> & { model: ServedModel },
): Promise<FastifyReply> {
  const binary: Buffer[] = [];
  const described = outputs.map(({ value, isBinary }): JsonParts => {
    const head = `{"name":${JSON.stringify(value.name)},"datatype":"${value.datatype}","shape":[${value.shape.join()}]`;
    if (!isBinary) {
      checkElements(value.data, value.datatype, value.name);
      return [`${head},"data":`, jsonOfData(value.data, value.datatype), "}"];
    }
    const bytes = bytesOf(value.data);
    binary.push(bytes);
    return [`${head},"parameters":{"binary_data_size":${bytes.length}}}`];
  });
  const idJson = id === undefined ? "" : `"id":${JSON.stringify(id)},`;
  const parts = [
    `{"model_name":${JSON.stringify(model.name)},"model_version":"${versionOf(model)}",${idJson}"outputs":[`,
    ...commaSeparated(described),
    "]}",
  ];
  if (binary.length === 0) return sendJson(reply, parts, model.settings);
  const json = await jsonInTurns(reply, parts, model.settings);
  checkReplyBytes(
    binary.reduce((sum, { length }) => sum + length, json.length),
    model.settings,
  );
  return reply
    .type("application/octet-stream")
    .header(headerLength, String(json.length))
    .send(Buffer.concat([json, ...binary]));
}
