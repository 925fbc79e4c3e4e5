import { defineWorker } from "../../dist/node/index.js";

/** What the worker does at an item, one after the other; the rest it returns at the end, each in its place. */
export type Step =
  | "answer"
  | "fail"
  | "return"
  | "until-abort"
  | "throw"
  | "exit"
  | "exit-once"
  | "twice"
  | "beyond"
  | "uncloneable"
  | "afterwards"
  | "large";

export default defineWorker({
  async run(items: Step[], _model, { answer, attempt, signal }): Promise<(string | Error | Float32Array)[]> {
    const rest: string[] = new Array<string>(items.length);
    for (const [index, step] of items.entries()) {
      const result = `${items.length} items, attempt ${attempt}`;
      if (step === "answer") answer(index, result);
      else if (step === "fail") answer(index, Object.assign(new RangeError("it is bad"), { code: "E_BAD" }));
      else if (step === "large") answer(index, new Float32Array(50_000).fill(7));
      else if (step === "throw") throw new Error("thrown later");
      else if (step === "exit" || (step === "exit-once" && attempt === 1)) process.exit(1);
      else if (step === "twice") for (const which of ["first", "second"]) answer(index, which);
      else if (step === "beyond") rest[index] = said(() => answer(items.length, result));
      else if (step === "uncloneable") rest[index] = said(() => answer(index, () => result));
      else {
        if (step === "afterwards") setImmediate(() => answer(0, "too late"));
        if (step === "until-abort") await new Promise((resolve) => signal.addEventListener("abort", resolve));
        rest[index] = result;
      }
    }
    return rest;
  },
});

function said(action: () => void): string {
  try {
    action();
    return "nothing";
  } catch (error) {
    return String(error);
  }
}
