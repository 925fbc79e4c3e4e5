import { workerProcess, workerThread } from "sheaf/node";
import { noThreadsBecause } from "../contract/devices.ts";

/** The function that starts workers on a device where threads would do: of processes, where the device takes no threads. */
export const workersOn = (device: string | undefined): typeof workerThread | typeof workerProcess =>
  noThreadsBecause(device) === undefined ? workerThread : workerProcess;
