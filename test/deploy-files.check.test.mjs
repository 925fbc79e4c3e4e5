// What deploy/ says is what there is: the files parse, every variable is a setting with a value that it takes, every flag
// and path exists.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { test } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { healthPaths } from "../packages/sheaf-server/dist/http/health-paths.js";
import { defaultSettings, settingsTable } from "../packages/sheaf-server/dist/settings/settings.js";
import { filesBelow, root } from "../scripts/lib/files.mjs";

const read = (path) => readFileSync(`${root}/${path}`, "utf8");
const compose = ["deploy/server.compose.yaml", "deploy/compose.yaml"].map((path) => ({
  path,
  ...parse(readFileSync(`${root}/${path}`, "utf8"), { merge: true }),
}));
const manifests = filesBelow("deploy/kubernetes", ".yaml").flatMap((file) =>
  parseAllDocuments(readFileSync(file, "utf8")).map((document) => {
    assert.deepEqual(document.errors, [], relative(root, file));
    return { file: relative(root, file), ...document.toJS() };
  }),
);
const podsOf = (kind) => manifests.filter((manifest) => manifest.kind === kind);
const deployments = podsOf("Deployment");
const fleet = deployments.filter(({ metadata }) => metadata.name !== "sheaf-server");
const scalers = [...podsOf("HorizontalPodAutoscaler"), ...podsOf("ScaledObject")];
const settings = podsOf("ConfigMap").find(({ metadata }) => metadata.name === "sheaf").data;

const complaintsOn = (environment) =>
  Object.entries(environment).flatMap(([name, value]) => {
    const setting = settingsTable.find(({ env }) => env === name);
    if (setting === undefined) return [`${name} is not a setting`];
    if (typeof value !== "string") return [`${name} must be a text, got ${value}`];
    return setting.parse(value) === undefined ? [`${name} must be ${setting.expects}, got ${value}`] : [];
  });

/** `serve mlp --role gateway`: a command and flags that exist, with a value that they take. */
const complaintsOnWords = ([command, model, flag, value]) => {
  const setting = settingsTable.find((candidate) => candidate.flag === flag);
  return command === "serve" && model === "mlp" && setting?.parse(value) !== undefined ? [] : [`${command} … ${flag}`];
};

test("every variable in the compose files and manifests is a setting, with a value that it takes", () => {
  const environments = [
    settings,
    ...compose.flatMap(({ services }) => Object.values(services).map(({ environment = {} }) => environment)),
    ...deployments.map(({ spec }) =>
      Object.fromEntries(
        spec.template.spec.containers[0].env.map(({ name, value, valueFrom }) => [
          name,
          value ?? valueFrom.secretKeyRef.key,
        ]),
      ),
    ),
  ];
  assert.deepEqual(environments.flatMap(complaintsOn), []);
  assert.deepEqual(complaintsOn({ NATS_URI: "x", NATS_REPLICAS: "0" }).length, 2);
});

test("every role of a fleet is started with words that the command takes", () => {
  const { services } = compose[1];
  const words = [
    services.gateway.command,
    services.worker.command,
    ...fleet.map(({ spec }) => spec.template.spec.containers[0].args),
  ];
  assert.deepEqual(words.flatMap(complaintsOnWords), []);
  assert.deepEqual(words.map((list) => list[3]).sort(), ["gateway", "gateway", "worker", "worker"]);
});

test("probes ask paths that need no key, on a port that the container names", () => {
  for (const { metadata, spec } of deployments) {
    const [container] = spec.template.spec.containers;
    for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
      const { path, port } = container[probe].httpGet;
      assert.ok(healthPaths.has(path), `${metadata.name}: ${path}`);
      assert.ok(
        container.ports.some(({ name }) => name === port),
        `${metadata.name}: ${port}`,
      );
    }
    assert.equal(container.readinessProbe.httpGet.path, "/readyz");
  }
});

test("selectors find their pods, budgets and scalers their deployments, and the configuration its queue", () => {
  const labelsOf = new Map(
    [...deployments, ...podsOf("StatefulSet")].map(({ metadata, spec }) => [
      metadata.name,
      spec.template.metadata.labels,
    ]),
  );
  const finds = (selector) =>
    [...labelsOf.values()].some((labels) => Object.entries(selector).every(([key, value]) => labels[key] === value));
  for (const { spec, file } of [...deployments, ...podsOf("StatefulSet"), ...podsOf("PodDisruptionBudget")])
    assert.ok(finds(spec.selector.matchLabels), file);
  for (const { spec, file } of podsOf("Service")) assert.ok(finds(spec.selector), file);
  for (const { spec } of scalers) assert.ok(labelsOf.has(spec.scaleTargetRef.name));
  const [, host, port] = /^nats:\/\/([a-z]+):(\d+)$/.exec(settings.NATS_URL);
  const service = podsOf("Service").find(({ metadata }) => metadata.name === host);
  assert.equal(service.spec.ports[0].port, Number(port));
});

test("a pod has longer to end than its pause and a shutdown may take", () => {
  for (const { spec } of deployments) {
    const { terminationGracePeriodSeconds, containers } = spec.template.spec;
    const pauseMs = Number(containers[0].lifecycle.preStop.exec.command[1]) * 1000;
    assert.ok(terminationGracePeriodSeconds * 1000 > pauseMs + Number(settings.SHUTDOWN_GRACE_MS));
  }
});

test("a deployment with an autoscaler leaves the number of pods to it, and no pod has more rights than it needs", () => {
  const scaled = new Set(scalers.map(({ spec }) => spec.scaleTargetRef.name));
  for (const { metadata, spec } of deployments)
    assert.equal(spec.replicas === undefined, scaled.has(metadata.name), metadata.name);
  for (const { metadata, spec } of [...deployments, ...podsOf("StatefulSet")]) {
    const { securityContext: ofPod, containers } = spec.template.spec;
    assert.deepEqual([ofPod.runAsNonRoot, ofPod.seccompProfile.type], [true, "RuntimeDefault"], metadata.name);
    const { securityContext, image } = containers[0];
    assert.deepEqual(securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    assert.doesNotMatch(image, /:latest$|^[^:]+$/);
  }
});

test("gateways, workers and the NATS server take its user from one secret", () => {
  const secretsOf = ({ spec }) =>
    spec.template.spec.containers[0].env.filter(({ valueFrom }) => valueFrom !== undefined).map(({ name }) => name);
  for (const pod of [...fleet, ...podsOf("StatefulSet")])
    assert.deepEqual(secretsOf(pod), ["NATS_USER", "NATS_PASSWORD"]);
});

test("server.compose.yaml waits for a server longer than SHUTDOWN_GRACE_MS, and gives the GPU only to the GPU image", () => {
  const services = Object.entries(compose[0].services).filter(([name]) => name.startsWith("inference-"));
  assert.deepEqual(services.map(([name]) => name).sort(), ["inference-cpu", "inference-gpu"]);
  for (const [name, { build, deploy, stop_grace_period: grace }] of services) {
    assert.match(grace, /^\d+s$/);
    assert.ok(parseInt(grace, 10) * 1000 > defaultSettings.shutdownGraceMs);
    const isGpu = name === "inference-gpu";
    assert.equal(build.dockerfile === "deploy/Dockerfile.gpu", isGpu);
    assert.equal(JSON.stringify(deploy ?? {}).includes('"gpu"'), isGpu);
  }
});

test("the GPU image takes the CUDA provider of the ONNX Runtime that npm installs", () => {
  const { version } = JSON.parse(read("package-lock.json")).packages["node_modules/onnxruntime-node"];
  const pins = read("deploy/cuda.txt").split("\n").filter((line) => /^[^#\s]/.test(line)); // prettier-ignore
  assert.ok(pins.includes(`onnxruntime-gpu==${version}`), `deploy/cuda.txt must name onnxruntime-gpu==${version}`);
  for (const pin of pins) assert.match(pin, /^[a-z\d-]+==[\d.]+$/);
});

test("docs/guide/python.md shows the Dockerfile of the example", () => {
  const file = read("examples/python-scikit-learn/Dockerfile");
  assert.ok(read("docs/guide/python.md").includes(file.replaceAll(/^#.*\n/gm, "")));
});
