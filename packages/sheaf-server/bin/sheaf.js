#!/usr/bin/env -S node --max-semi-space-size=8 --heap-growing-percent=100 --v8-pool-size=2
// The flags bound the memory of what lives for a request only, and how often it is freed: docs/guide/operating.md#cpu-and-memory.
import { setFlagsFromString } from "node:v8";

// Of the heaps of worker threads. This thread has its own already.
setFlagsFromString("--max-semi-space-size=2");
// Not dist/cli/main.js itself: npm links a command only if its file is there at install, and a clone is built after that.
await import("../dist/cli/main.js");
