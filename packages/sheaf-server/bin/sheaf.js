#!/usr/bin/env -S node --max-semi-space-size=8
// The flag bounds the memory of what lives for a request only: docs/guide/serving.md#memory.
// Not dist/cli/main.js itself: npm links a command only if its file is there at install, and a clone is built after that.
import "../dist/cli/main.js";
