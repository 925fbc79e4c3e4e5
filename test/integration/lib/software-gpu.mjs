// WebGPU without a GPU: the software Vulkan driver that Debian's chromium brings, for the processes started from here on.
import { existsSync } from "node:fs";
import { absent } from "../../support/absent.mjs";

const folder = "/usr/lib/chromium";
const driver = `${folder}/vk_swiftshader_icd.json`;

/** What a process needs in its environment to find that driver, and no other one. */
export const softwareGpu = { LD_LIBRARY_PATH: folder, VK_ICD_FILENAMES: driver, VK_DRIVER_FILES: driver };

/** For `describe(name, { skip })`: false where the driver is there, else why not. On CI that is a failure. */
export const skipWithoutSoftwareGpu = existsSync(driver)
  ? false
  : absent("SwiftShader is not installed (apt-get install chromium): WebGPU is not tested");
