/**
 * `npm run bench -- peers [--servers sheaf,batched-fn,mosec] [--rounds 2] [--seconds 5] [--rates 100,300,…]
 * [--drives closed,open,openBinary,burst,overload,lone] [--out FOLDER] [--from FOLDER] [--install-only]`: the server beside other batching
 * servers, the same ONNX model behind each, loaded by a generator in Rust. The
 * first run installs and builds them. The servers take turns in every round. Linux. About two and a half minutes a
 * server and round with the defaults.
 */
import { compare } from "./peers/compare.mjs";

await compare({
  command: "peers",
  title: "Beside other batching servers",
  defaultServers: ["sheaf", "batched-fn", "mosec"],
});
