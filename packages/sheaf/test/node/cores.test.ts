import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { ownCores, shortageOf } from "../../dist/node/pool/cores.js";

for (const [what, files, cores] of [
  ["no cgroup", {}, 64],
  ["v2, no quota", { "proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "max 100000" }, 64],
  ["v2 in a container", { "proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "150000 100000" }, 2],
  ["less than a core", { "proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "50000 100000" }, 1],
  ["more than there are", { "proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "8000000 100000" }, 64],
  [
    "a systemd unit in a slice with less",
    {
      "proc/self/cgroup": "0::/work.slice/sheaf.service",
      "sys/fs/cgroup/work.slice/sheaf.service/cpu.max": "400000 100000",
      "sys/fs/cgroup/work.slice/cpu.max": "300000 100000",
    },
    3,
  ],
  [
    "v1 in a container, with the path of the host",
    {
      "proc/self/cgroup": "12:memory:/docker/1f\n4:cpu,cpuacct:/docker/1f\n0::/system.slice",
      "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "250000",
      "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
    },
    3,
  ],
  [
    "v1 without a quota",
    {
      "proc/self/cgroup": "1:cpu:/",
      "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
      "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
    },
    64,
  ],
] as const)
  test(`a process uses no more cores than its CPU quota allows: ${what}`, async (t) => {
    const root = await mkdtemp(join(tmpdir(), "sheaf-cgroup-"));
    t.after(() => rm(root, { recursive: true }));
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), `${text}\n`);
    }
    assert.equal(ownCores(64, root), cores);
  });

test("cores are short where the process uses most of its own, not where many are idle", () => {
  assert.equal(shortageOf(2, 0.39, 0.3), 0);
  assert.equal(shortageOf(2, 1.2, 0.3), 1);
  assert.equal(shortageOf(1, 0.2, 0.2), 0, "one core, hardly used");
  assert.equal(shortageOf(16, 8, 0.3), 0, "eight idle cores");
  assert.equal(shortageOf(16, 15.5, 0.3), 1);
  const half = shortageOf(2, 0.6, 0.4);
  assert.ok(half > 0 && half < 1, `${half}`);
});

test("a thread that answers all the time is short of its core, however many others are idle", () => {
  assert.equal(shortageOf(16, 1.5, 0.95), 1);
  assert.equal(shortageOf(16, 1.5, 0.5), 0);
});
