/**
 * Turns off the telemetry of ONNX Runtime, which is on by default: it writes a device id and a cache below the home folder
 * and uploads where it can. The runtime reads the variable when it loads, from the environment of the process. A worker
 * thread has a copy of that environment, so the main thread must import this before it starts a worker; worker processes
 * inherit it. A value that the user has set always stays.
 */
process.env["ORT_DISABLE_TELEMETRY"] ??= "1";
