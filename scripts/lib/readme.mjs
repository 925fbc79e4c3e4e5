import { readFileSync } from "node:fs";
import { root } from "./files.mjs";
import { codeBlocks } from "./markdown.mjs";

const kinds = {
  serve: (command) => command === "npm ci && npm start",
  test: (command) => command === "npm ci && npm test",
  install: (command) =>
    command.split("\n").every((line) => /^(ONNXRUNTIME_NODE_INSTALL=skip )?npm install sheaf(-server)?\b/.test(line)),
  ask: (command) => command.startsWith("curl localhost:8000/"),
  sheaf: (command) => command.split("\n").every((line) => line.startsWith("npx sheaf ")),
};

/** The pages whose `npx sheaf …` blocks a newcomer tries. */
const triedPages = ["README.md", "docs/guide/capacity.md"];

/** The blocks of `npx sheaf …` lines that a newcomer tries, with their outputs where a page shows them: `{ page, command, output }`. */
export function sheafSteps() {
  return triedPages.flatMap((page) =>
    codeBlocks(readFileSync(`${root}/${page}`, "utf8"))
      .filter(({ language, text }) => language === "sh" && kinds.sheaf(text.trim()))
      .map(({ text, output }) => ({ page, command: text.trim(), output })),
  );
}

/**
 * The shell blocks of README.md in their order: `{ kind, command, output }`, the output undefined where the document shows
 * none. test/readme.check.test.mjs and test/tarballs.release.test.mjs run each kind but the installs, which `npm run prove -- release` types.
 * @throws {Error} for a block that none of them would run.
 */
export function readmeSteps(markdown = readFileSync(`${root}/README.md`, "utf8")) {
  return codeBlocks(markdown)
    .filter(({ language }) => language === "sh")
    .map(({ text, output }) => {
      const command = text.trim();
      const kind = Object.keys(kinds).find((name) => kinds[name](command));
      if (kind === undefined)
        throw new Error(`no test runs this block of README.md (scripts/lib/readme.mjs):\n${command}`);
      return { kind, command, output };
    });
}
