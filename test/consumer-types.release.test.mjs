// A user's compiler, the oldest we promise and the current one, with the strictest options.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { commonJsOptions, commonJsUse, node10Options, strictestOptions } from "../scripts/lib/consumer.mjs";
import { root } from "../scripts/lib/files.mjs";
import { entryPoints, publicExports } from "../scripts/lib/public-exports.mjs";

const folder = `${root}/artifacts/consumer`;
const library = readFileSync(`${root}/test/fixtures/consumer/every-entry-point.ts`, "utf8");
const server = readFileSync(`${root}/test/fixtures/consumer/server-entry-point.ts`, "utf8");
before(() => {
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/package.json`, JSON.stringify({ type: "module" }));
});
after(() => rmSync(folder, { recursive: true }));

test("the programs with declarations use every value of every entry point", () => {
  const alias = new Map(
    [...`${library}${server}`.matchAll(/import \* as (\w+) from "(.+)";/g)].map(([, name, from]) => [from, name]),
  );
  const exported = publicExports();
  const values = [...entryPoints("sheaf"), ...entryPoints("sheaf-server")].flatMap(({ specifier }) =>
    exported[specifier].filter((name) => !name.startsWith("type ")).map((name) => `${alias.get(specifier)}.${name}`),
  );
  assert.ok(values.length > 50);
  const unused = values.filter((value) => !library.includes(value) && !server.includes(value));
  assert.deepEqual(unused, []);
});

for (const [compiler, version] of [
  ["typescript-5.2", /^Version 5\.2\./],
  ["typescript", /^Version 7\./],
]) {
  const tsc = (...words) =>
    new Promise((resolve) => {
      const file = `${root}/node_modules/${compiler}/bin/tsc`;
      execFile(process.execPath, [file, ...words], (error, stdout) => resolve({ status: error?.code ?? 0, stdout }));
    });

  test(`${compiler} takes every entry point without skipLibCheck and @types/node, and names in declarations what it makes`, async () => {
    assert.match((await tsc("--version")).stdout, version);
    const project = `${folder}/declarations.json`;
    writeFileSync(`${folder}/library.ts`, library);
    const emits = { noEmit: false, declaration: true, emitDeclarationOnly: true, outDir: compiler };
    const compilerOptions = { ...strictestOptions, ...emits };
    writeFileSync(project, JSON.stringify({ compilerOptions, files: ["library.ts"] }));
    const { status, stdout } = await tsc("-p", project);
    assert.equal(status, 0, stdout);
    const declarations = readFileSync(`${folder}/${compiler}/library.d.ts`, "utf8");
    assert.match(declarations, /length: sheaf\.Batcher<string, number>/);
    assert.doesNotMatch(declarations, /: any\b|\/dist\//);
  });

  test(`${compiler} names in declarations the type of everything that sheaf-server makes`, async () => {
    const project = `${folder}/server.json`;
    writeFileSync(`${folder}/server.ts`, server);
    // The types of Fastify and of Node are not ours to check.
    const uses = { types: ["node"], typeRoots: [`${root}/node_modules/@types`], skipLibCheck: true };
    const emits = { noEmit: false, declaration: true, emitDeclarationOnly: true, outDir: compiler };
    const compilerOptions = { ...strictestOptions, ...uses, ...emits };
    writeFileSync(project, JSON.stringify({ compilerOptions, files: ["server.ts"] }));
    const { status, stdout } = await tsc("-p", project);
    assert.equal(status, 0, stdout);
    const declarations = readFileSync(`${folder}/${compiler}/server.d.ts`, "utf8");
    assert.match(declarations, /server: sheafServer\.SheafServer/);
    assert.doesNotMatch(declarations, /: any\b|\/dist\//);
  });

  for (const given of compiler === "typescript-5.2" ? [...commonJsOptions, node10Options] : commonJsOptions) {
    test(`${compiler} compiles a CommonJS module with ${Object.values(given).join(" and ")}`, async () => {
      const project = `${folder}/${given.module}.json`;
      writeFileSync(`${folder}/use.cts`, commonJsUse);
      writeFileSync(
        project,
        JSON.stringify({ compilerOptions: { ...strictestOptions, ...given }, files: ["use.cts"] }),
      );
      const { status, stdout } = await tsc("-p", project);
      assert.equal(status, 0, stdout);
    });
  }
}
