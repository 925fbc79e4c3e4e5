import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Files through which drivers on Linux reach a GPU: DRM, NVIDIA, Tegra, WSL, Mali, Adreno. */
const gpuFile = /^\/dev\/(?:dri\/|nvidia|nvgpu|nvhost|nvmap|dxg|mali|kgsl)/u;
/** Vulkan drivers in this process's memory. */
const driverFile = /\/((?:libvk_|libvulkan_|libVk|libGLX_)\w+)[^/\s]*$/gmu;

/**
 * The Vulkan drivers of this process, where none of them has a GPU: then its adapter computes in software, on the CPU. To be
 * asked while a session is open. ONNX Runtime for Node does not say which adapter it took, so this looks at the files that
 * its drivers have open; a GPU is preferred to software wherever there are both. Only Linux shows it: undefined elsewhere.
 */
export function softwareAdapter(): string | undefined {
  if (process.platform !== "linux") return undefined;
  const open = readdirSync("/proc/self/fd").map(targetOf);
  if (open.some((file) => gpuFile.test(file))) return undefined;
  const drivers = Array.from(readFileSync("/proc/self/maps", "utf8").matchAll(driverFile), ([, name]) => name!);
  return [...new Set(drivers)].join(" ") || "a driver without a GPU";
}

function targetOf(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return ""; // Closed meanwhile, as the listing's own is.
  }
}
