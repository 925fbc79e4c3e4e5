// `npm run bench -- size`: the core as a bundler ships it, and which modules its bytes are in.
import { coreModules, coreSizes } from "../scripts/lib/size.mjs";

for (const [name, { bytes }] of Object.entries(await coreSizes())) console.log(`${name}: ${bytes} bytes min+gzip`);
console.log("\nMinified bytes by module, before gzip:");
for (const { path, bytes } of await coreModules()) console.log(`${String(bytes).padStart(7)}  ${path}`);
