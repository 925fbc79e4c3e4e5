/** The devices of a setting, in order. @throws {RangeError} one that is not known. */
export function devicesOf(setting = "cpu"): string[] {
  const devices = setting.split(",").map((device) => device.trim().toLowerCase());
  const unknown = devices.find((device) => !/^(?:cpu|cuda(?::\d{1,2})?)$/u.test(device));
  if (unknown === undefined) return devices;
  throw new RangeError(
    `INFERENCE_DEVICE must be cpu, cuda or cuda:N, or several of them with commas, got ${JSON.stringify(setting)}`,
  );
}
