const devicePattern = /^(?:cpu|webgpu|cuda(?::\d{1,2})?)$/u;

/** The allowed values of a setting of devices, in words. */
export const devicesExpected = "auto, or cpu, webgpu, cuda or cuda:N, several with commas";

/** The devices of a setting, in order, or `["auto"]`. @throws {RangeError} one that is not known. */
export function devicesOf(setting = "cpu"): string[] {
  const devices = setting.split(",").map((device) => device.trim().toLowerCase());
  const isAuto = devices.length === 1 && devices[0] === "auto";
  if (isAuto || devices.every((device) => devicePattern.test(device))) return devices;
  throw new RangeError(`INFERENCE_DEVICE must be ${devicesExpected}, got ${JSON.stringify(setting)}`);
}

/** Why a device serves in worker processes alone; undefined where threads are as good. */
export const noThreadsBecause = (device: string | undefined): string | undefined =>
  device === "webgpu" || device === "auto" ? "two threads that use WebGPU at once crash their process" : undefined;
