// The manifests in deploy/ fit the APIs of Kubernetes and KEDA, as kubernetes-models publishes them: its schemas check the
// values, and its types, that no field is unknown there.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Deployment } from "kubernetes-models/apps/v1/Deployment";
import { ScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1/ScaledObject";
import { StatefulSet } from "kubernetes-models/apps/v1/StatefulSet";
import { HorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget";
import { ConfigMap } from "kubernetes-models/v1/ConfigMap";
import { Service } from "kubernetes-models/v1/Service";
import { parseAllDocuments } from "yaml";

const kinds = {
  ConfigMap,
  Deployment,
  HorizontalPodAutoscaler,
  PodDisruptionBudget,
  ScaledObject,
  Service,
  StatefulSet,
};
const manifestsFolder = new URL("../../deploy/kubernetes/", import.meta.url);
const files = readdirSync(manifestsFolder, { recursive: true }).filter((file) => file.endsWith(".yaml"));
const manifests = files.flatMap((file) =>
  parseAllDocuments(readFileSync(new URL(file, manifestsFolder), "utf8")).map((document) => ({
    file,
    ...document.toJS(),
  })),
);
// In this folder, so that the compiler finds kubernetes-models.
const folder = mkdtempSync(fileURLToPath(new URL(".kubernetes-", import.meta.url)));
after(() => rmSync(folder, { recursive: true }));

for (const { file, ...manifest } of manifests) {
  test(`${file}: ${manifest.kind} ${manifest.metadata.name} fits its schema`, () => {
    const Kind = kinds[manifest.kind];
    assert.ok(Kind, `no schema for ${manifest.kind}`);
    assert.equal(manifest.apiVersion, new Kind().apiVersion);
    new Kind(manifest).validate();
  });
}

test("no manifest has a field that the API does not know, and a misspelt one is found", () => {
  assert.equal(complaintsOn(manifests), "");
  const misspelt = structuredClone(manifests.find(({ kind }) => kind === "Deployment"));
  misspelt.spec.template.spec.containers[0].livenesProbe = {};
  assert.match(complaintsOn([misspelt]), /livenesProbe/);
  const scaled = structuredClone(manifests.find(({ kind }) => kind === "ScaledObject"));
  scaled.spec.maxReplicas = 3;
  assert.match(complaintsOn([scaled]), /maxReplicas/);
});

/** What the compiler says of manifests as literals of their types. */
function complaintsOn(list) {
  const literals = list.map(({ file: _, ...manifest }, index) => {
    const scope = manifest.apiVersion.startsWith("keda.sh/") ? "@kubernetes-models/keda" : "kubernetes-models";
    const from = `${scope}/${manifest.apiVersion}/${manifest.kind}`;
    return `export const manifest${index}: import("${from}").I${manifest.kind} = ${JSON.stringify(manifest)};`;
  });
  writeFileSync(`${folder}/manifests.mts`, literals.join("\n"));
  const tsc = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url));
  const options = ["--noEmit", "--skipLibCheck", "--strict", "--module", "nodenext"];
  return spawnSync(process.execPath, [tsc, ...options, `${folder}/manifests.mts`], { encoding: "utf8" }).stdout;
}
