// Loaded in workers: rows of float32 as JSON.
export { maxFloat32JsonBytes as maxBytes, writeFloat32Json as write } from "./float32-json.ts";
