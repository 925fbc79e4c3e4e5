/**
 * `npm run prove -- packages`, part of `npm run test:release`: the packed tarballs in an empty project: every entry point imported and required, and the
 * command with a model in a worker, on this Node and on Node 22, 24 and 26; their types from TypeScript 5.2 to the newest; and
 * what attw says of them. Adapters load without the clients that they adapt. Fails if one of these fails. About 2 minutes.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { strictestOptions, useOfTypes } from "../scripts/lib/consumer.mjs";
import { entryPoints } from "../scripts/lib/public-exports.mjs";
import { installTarballs, packTarballs, userEnvironment } from "../scripts/lib/tarballs.mjs";
import { attw, attwCommand, installTools } from "../scripts/lib/tools.mjs";
import { installRuntimes } from "./lib/runtimes.mjs";

const typescripts = ["5.2", "5.5", "5.9", "6", "latest"];

const folder = mkdtempSync(join(tmpdir(), "sheaf-packages-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const project = join(folder, "project");
const tarballs = await packTarballs(["sheaf", "sheaf-server"], join(folder, "packed"));
await installTarballs(tarballs, project);

const use = `const double = createBatcher((items) => items.map((item) => 2 * item));
  Promise.all([1, 2].map(double)).then((results) => { if (results.join() !== "2,4") process.exitCode = 1; });`;
const pointsOf = (name) => entryPoints(name).map(({ specifier }) => specifier);
const points = [...pointsOf("sheaf"), ...pointsOf("sheaf-server")];
const imports = points.map((point) => `import "${point}";`).join(" ");
const requires = points.map((point) => `require("${point}");`).join(" ");
writeFileSync(join(project, "use.mjs"), `import { createBatcher } from "sheaf"; ${imports} ${use}`);
writeFileSync(join(project, "use.cjs"), `const { createBatcher } = require("sheaf"); ${requires} ${use}`);
const command = ["node_modules/sheaf-server/bin/sheaf.js", "tune", "mlp", "--sizes", "1,8", "--max-time", "1s"];
for (const { name, command: node } of installRuntimes(folder, ["Node 22", "Node 24", "Node 26"])) {
  for (const file of ["use.mjs", "use.cjs"])
    step(`${name} runs ${file}: ${points.length} entry points`, [...node, file]);
  step(`${name} runs sheaf tune mlp`, [...node, ...command]);
}

writeFileSync(join(project, "use.ts"), useOfTypes(pointsOf("sheaf")));
writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: strictestOptions, files: ["use.ts"] }));
writeFileSync(join(project, "package.json"), JSON.stringify({ name: "user", private: true, type: "module" }));
const aliases = typescripts.map((version) => `typescript-${version}@npm:typescript@${version}`);
const tool = installTools(join(folder, "tools"), [...aliases, attw]);
for (const version of typescripts)
  step(`TypeScript ${version} compiles use.ts`, [process.execPath, tool(`typescript-${version}/bin/tsc`), "-p", "."]);

for (const { path } of tarballs) step(`attw on ${basename(path)}`, attwCommand(tool, path));

function step(name, [command, ...parameters]) {
  try {
    execFileSync(command, parameters, { cwd: project, env: userEnvironment(), encoding: "utf8", stdio: "pipe" });
    console.log(`✔ ${name}`);
  } catch (error) {
    console.log(`✖ ${name}\n${error.stdout}${error.stderr}`);
    process.exitCode = 1;
  }
}
