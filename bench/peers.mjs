/**
 * `npm run bench -- peers [--servers sheaf,batched-fn,mosec] [--rounds 2] [--seconds 5] [--drives closed,open,burst,lone]
 * [--rates 100,300,…] [--out FOLDER] [--from FOLDER] [--install-only]`: the server beside other batching servers, the same
 * ONNX model behind each, loaded by a generator in Rust. The first run installs and builds them. The servers take turns in
 * every round. Linux. With the defaults about three minutes a server.
 */
import { compare } from "./peers/compare.mjs";

await compare({ command: "peers", defaultServers: ["sheaf", "batched-fn", "mosec"] });
