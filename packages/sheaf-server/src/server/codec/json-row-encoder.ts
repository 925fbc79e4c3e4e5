import { maxFloat32JsonBytes, writeFloat32Json } from "./float32-json.ts";

// Loaded in workers: rows of float32 as JSON.
export const maxBytes = ({ length }: Float32Array): number => 2 + maxFloat32JsonBytes * length;
export const write: typeof writeFloat32Json = writeFloat32Json;
