import type { FastifyInstance } from "fastify";

export interface EndpointMatch {
  /** The model in the path. */
  readonly model: string | undefined;
}

/** Records routes with a JSON body as they are added, so call it first. @returns a function that finds one by path. */
export function jsonEndpoints(
  app: FastifyInstance,
  except: ReadonlySet<string>,
): (path: string) => EndpointMatch | undefined {
  const patterns = new Map<string, RegExp>();
  const { prefix } = app;
  app.addHook("onRoute", ({ url, method }) => {
    const path = url.slice(prefix.length);
    if (![method].flat().includes("POST") || except.has(path) || /^\/v1\/(?:files|batches)/.test(path)) return;
    const escaped = path.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&");
    patterns.set(path, new RegExp(`^${escaped.replaceAll(/:([^/]+)/g, "(?<$1>[^/]+)")}$`));
  });
  return (path) => {
    for (const pattern of patterns.values()) {
      const groups = pattern.exec(path)?.groups;
      if (groups !== undefined || pattern.test(path)) return { model: nameIn(groups?.["model"]) };
    }
    return undefined;
  };
}

function nameIn(text: string | undefined): string | undefined {
  try {
    return text && decodeURIComponent(text);
  } catch {
    return text;
  }
}
