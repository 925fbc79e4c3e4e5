#!/usr/bin/env node
// Not dist/cli/main.js itself: npm links a command only if its file is there at install, and a clone is built after that.
import "../dist/cli/main.js";
