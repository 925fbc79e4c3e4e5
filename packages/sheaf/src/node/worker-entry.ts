const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));

/** The module that every worker thread and process starts with; from `src` or from `dist`, as this one. */
export const workerEntry: URL = new URL(`./worker-main${extension}`, import.meta.url);
