// A Python that can import PyTorch: that of the environment, else Debian's.
import { spawnSync } from "node:child_process";
import { absent } from "../../support/absent.mjs";

export const withTorch = ["python3", "/usr/bin/python3"].find(
  (python) => spawnSync(python, ["-c", "import torch, numpy"]).status === 0,
);

/** For `test(name, { skip })`. */
export const skipWithoutTorch =
  withTorch === undefined
    ? absent("PyTorch is not installed (apt-get install python3-torch): examples/pytorch is not tested")
    : false;
