import { fileURLToPath } from "node:url";

const extension = import.meta.url.endsWith(".ts") ? ".ts" : ".js";

/** The file that `node` runs to start `sheaf`, for the commands that start another one. */
export const sheafEntry: string = fileURLToPath(new URL(`./main${extension}`, import.meta.url));
