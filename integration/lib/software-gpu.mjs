// WebGPU without a GPU: the software Vulkan driver that Debian's chromium brings, for the processes started from here on.
import { existsSync } from "node:fs";

const folder = "/usr/lib/chromium";
const driver = `${folder}/vk_swiftshader_icd.json`;

/** What a process needs in its environment to find that driver, and no other one. */
export const softwareGpu = { LD_LIBRARY_PATH: folder, VK_ICD_FILENAMES: driver, VK_DRIVER_FILES: driver };

/** Why the tests do not run here; false where they do. In CI a missing driver fails them. */
export const skipWithoutSoftwareGpu =
  existsSync(driver) || process.env.CI === "true" ? false : "install Debian's chromium: its SwiftShader is the GPU";
