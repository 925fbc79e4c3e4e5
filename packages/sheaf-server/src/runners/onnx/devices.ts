const devicePattern = /^(?:cpu|cuda(?::\d{1,2})?)$/u;

/** What a setting of devices must be, in words. */
export const devicesExpected = "cpu, cuda or cuda:N, or several with commas";

/** The devices of a setting, in order. @throws {RangeError} one that is not known. */
export function devicesOf(setting = "cpu"): string[] {
  const devices = setting.split(",").map((device) => device.trim().toLowerCase());
  if (devices.every((device) => devicePattern.test(device))) return devices;
  throw new RangeError(`INFERENCE_DEVICE must be ${devicesExpected}, got ${JSON.stringify(setting)}`);
}
