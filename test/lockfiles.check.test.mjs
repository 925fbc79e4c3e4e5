// `npm ci` refuses a lockfile that lacks an entry, even one for another platform; CI would find out after minutes.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { root } from "../scripts/lib/files.mjs";
import { userEnvironment } from "../scripts/lib/tarballs.mjs";

for (const folder of [".", "test/integration", "scripts/site"])
  test(`npm ci takes ${folder === "." ? "" : `${folder}/`}package-lock.json as it is`, async () => {
    const options = { cwd: `${root}/${folder}`, env: userEnvironment() };
    const { status, stderr } = await new Promise((resolve) => {
      execFile("npm", ["ci", "--dry-run", "--loglevel=error"], options, (error, _, stderr) =>
        resolve({ status: error?.code ?? 0, stderr }),
      );
    });
    const advice =
      "Where the registry lacks a release's binaries for some platforms, pin an older one in package.json.";
    assert.equal(status, 0, `${stderr}\n${advice}`);
  });
