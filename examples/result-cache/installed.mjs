// `npm start` runs this first: it says what to do where packages are missing.
import { readFileSync } from "node:fs";

const { dependencies } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8"));
const missing = Object.keys(dependencies).filter((name) => {
  try {
    import.meta.resolve(name);
    return false;
  } catch (error) {
    return error.code === "ERR_MODULE_NOT_FOUND";
  }
});
if (missing.length > 0) {
  console.error(`Not installed: ${missing.join(", ")}. Run npm install here.`);
  if (missing.some((name) => /^sheaf(-server)?$/.test(name)))
    console.error(
      "sheaf and sheaf-server are not on npm yet. In a clone of the repository run npm ci && npm run build && " +
        "npm pack -w sheaf -w sheaf-server; then npm install the .tgz files here.",
    );
  process.exitCode = 1;
}
