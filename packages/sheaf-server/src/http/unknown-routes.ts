import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Problem } from "../problems/problem.ts";
import { sendProblem } from "./replies.ts";

/** 404 for unknown paths, 405 with `Allow` for methods that a path does not take. Call before any route. */
export function answerUnknownRoutes(app: FastifyInstance): void {
  const routes = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>();
  app.addHook("onRoute", ({ url, method }) => {
    const route = routes.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() };
    routes.set(url, route);
    for (const name of [method].flat()) route.methods.add(name);
  });
  const answer = (request: FastifyRequest, reply: FastifyReply): void => {
    reply.header("x-request-id", request.id);
    const path = request.url.split("?", 1)[0]!;
    const allowed = [...routes.values()]
      .filter(({ pattern }) => pattern.test(path))
      .flatMap(({ methods }) => [...methods]);
    if (allowed.length === 0)
      return sendProblem(reply, new Problem("NOT_FOUND", `There is no ${path.slice(0, 200)}; /docs lists the routes.`));
    const allow = [...new Set(allowed)].join(", ");
    const message = `${path.slice(0, 200)} does not take ${request.method}, only ${allow}.`;
    return sendProblem(reply, new Problem("METHOD_NOT_ALLOWED", message, { headers: { allow } }));
  };
  void app.register(async (unknown) => {
    unknown.setNotFoundHandler(answer);
    // Before the body is read, so that an error in it does not hide the error in the path.
    unknown.addHook("preParsing", (request, reply) => answer(request, reply));
  });
}

/** Fastify's `:name` stands for one segment, `*` for the rest. */
function patternOf(url: string): RegExp {
  const escaped = url.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${escaped.replaceAll(/:[^/]+/g, "[^/]+").replaceAll("*", ".*")}/?$`);
}
