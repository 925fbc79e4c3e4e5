#!/usr/bin/env -S node --max-semi-space-size=8 --heap-growing-percent=100
// The flags bound the memory of what lives for a request only, and how often it is freed: docs/guide/serving.md#memory.
// Not dist/cli/main.js itself: npm links a command only if its file is there at install, and a clone is built after that.
import "../dist/cli/main.js";
