/**
 * `npm run prove -- workflows`, part of `npm run test:release`: actionlint on the workflows of CI and of releases: syntax, expressions, and their shell lines.
 * It is built here by Go from its module proxy, for about a minute.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../scripts/lib/files.mjs";

const version = "v1.7.12";
const bin = mkdtempSync(join(tmpdir(), "sheaf-actionlint-"));
process.on("exit", () => rmSync(bin, { recursive: true, force: true }));

const workflows = readdirSync(`${root}/.github/workflows`).map((name) => `.github/workflows/${name}`);
run("go", ["install", `github.com/rhysd/actionlint/cmd/actionlint@${version}`], { ...process.env, GOBIN: bin });
run(join(bin, "actionlint"), workflows);
console.log(`actionlint ${version} finds nothing in ${workflows.join(" and ")}.`);

function run(command, parameters, env = process.env) {
  const { status, error } = spawnSync(command, parameters, { cwd: root, env, stdio: "inherit", timeout: 300_000 });
  if (status !== 0) throw new Error(`${command} ${parameters.join(" ")}: ${error?.message ?? `exit ${status}`}`);
}
