import assert from "node:assert/strict";
import { test } from "node:test";
import { misspeltVariables } from "../../dist/settings/misspelt.js";
import { settingsTable } from "../../dist/settings/settings.js";

for (const [given, meant] of [
  ["MAX_BATCHSIZE", "MAX_BATCH_SIZE"],
  ["max_batch_size", "MAX_BATCH_SIZE"],
  ["maxBatchSize", "MAX_BATCH_SIZE"],
  ["SHEAF_MAX_BATCH_SIZE", "MAX_BATCH_SIZE"],
  ["MAX_BATCH_SZIE", "MAX_BATCH_SIZE"],
  ["MAX_BATCH_SIZES", "MAX_BATCH_SIZE"],
  ["MAX_QUEUE_SIZE", "QUEUE_MAX_SIZE"],
  ["MAX_WAIT", "MAX_WAIT_MS"],
  ["REQUEST_TIMEOUT", "REQUEST_TIMEOUT_MS"],
  ["LOGLEVEL", "LOG_LEVEL"],
  ["GRPCPORT", "GRPC_PORT"],
  ["SCHEDULER_STRATAGY", "SCHEDULER_STRATEGY"],
] as const)
  test(`the variable ${given} is reported as ${meant}`, () => {
    assert.deepEqual(misspeltVariables({ [given]: "1" }), [{ given, meant }]);
  });

test("no variable that other programs set is reported, nor a setting, nor an empty one", () => {
  // Of a shell, a CI, Docker's Node and Python images, Kubernetes, OpenTelemetry, CUDA and API clients.
  const others =
    "PATH HOME HOSTNAME HOSTS PWD SHELL TERM LANG LC_ALL TZ USER LOGNAME SHLVL EDITOR TMPDIR CI NODE_ENV NODE_VERSION " +
    "NODE_OPTIONS NODE_PATH YARN_VERSION NPM_CONFIG_CACHE npm_lifecycle_event PYTHON_VERSION PYTHONPATH PYTHONUNBUFFERED " +
    "PYTHON_PIP_VERSION PORTS NATS_PORT NATS_SERVICE_HOST NATS_SERVICE_PORT KUBERNETES_PORT KUBERNETES_SERVICE_HOST " +
    "OTEL_LOG_LEVEL OTEL_EXPORTER_OTLP_ENDPOINT OMP_NUM_THREADS CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES " +
    "OPENAI_API_KEY HTTP_PROXY NO_COLOR FORCE_COLOR DEBUG UV_THREADPOOL_SIZE MALLOC_ARENA_MAX REDIS_URL DATABASE_URL " +
    "MODEL_NAME MODEL_PATH WORKER WATCHER ROLES GITHUB_RUN_ID MAX_TOKENS BATCH_SIZE WORKSPACE PYTHONHOME PS1 _";
  assert.deepEqual(misspeltVariables(Object.fromEntries(others.split(" ").map((name) => [name, "1"]))), []);
  assert.deepEqual(misspeltVariables(Object.fromEntries(settingsTable.map(({ env }) => [env, "1"]))), []);
  assert.deepEqual(misspeltVariables({ MAX_BATCHSIZE: "" }), []);
  assert.deepEqual(misspeltVariables({ MAX_BATCHSIZE: "1", MAX_BATCH_SIZE: "2" }), []);
});
