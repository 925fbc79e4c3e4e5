/**
 * A Dockerfile as stages of instructions: `[{ from, name, steps: [{ instruction, text }] }]`. Continued lines are one
 * step; comments are left out. Of the syntax only what our Dockerfiles use; anything else is an error, not a guess.
 */
export function parseDockerfile(source) {
  const stages = [];
  const lines = source
    .split("\n")
    .filter((line) => !/^\s*#/.test(line))
    .join("\n")
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .filter((line) => line.trim() !== "");
  for (const line of lines) {
    const [, instruction, text] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? fail(line);
    if (!known.has(instruction)) fail(line);
    if (instruction !== "FROM") stages.at(-1).steps.push({ instruction, text });
    else {
      const [, from, name] = /^(\S+)(?:\s+AS\s+(\S+))?$/.exec(text) ?? fail(line);
      stages.push({ from, name, steps: [] });
    }
  }
  return stages;
}

const known = new Set(
  ["FROM", "ARG", "WORKDIR", "COPY", "RUN", "ENV", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"], // prettier-ignore
);

function fail(line) {
  throw new Error(`The Dockerfile has a line that this parser does not know: ${line}`);
}

/** `COPY [--from=stage] source … target`. */
export function copyOf(text) {
  const words = text.split(/\s+/);
  const from = words[0].startsWith("--from=") ? words.shift().slice("--from=".length) : undefined;
  return { from, sources: words.slice(0, -1), target: words.at(-1) };
}

/** `ENV a=1 b=2` as an object. */
export const envOf = (text) => Object.fromEntries(text.split(/\s+/).map((pair) => pair.split(/=(.*)/s).slice(0, 2)));

/** Whether a .dockerignore keeps a path of the repository out of the image. Of the patterns only what ours uses. */
export function isIgnored(path, dockerignore) {
  const patterns = dockerignore.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return patterns.some((pattern) => {
    const anywhere = pattern.startsWith("**/");
    const name = (anywhere ? pattern.slice(3) : pattern).replaceAll(".", "\\.").replaceAll("*", "[^/]*");
    return new RegExp(`^${anywhere ? "(?:.*/)?" : ""}${name}(?:/|$)`).test(path);
  });
}
