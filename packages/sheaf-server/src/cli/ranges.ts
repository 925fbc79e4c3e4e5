import { createReadStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Command } from "commander";
import { createBatcher } from "sheaf";
import { workerThread } from "sheaf/node";
import type { VectorRanges } from "../runners/contract/model-spec.ts";
import { textFolderSpec } from "../runners/text/folder.ts";
import { rangesFile, widened } from "../runners/text/ranges.ts";
import { ofLengthOne, shortened } from "../runners/text/vector-modules.ts";
import { CommandFailure } from "../shared/failure.ts";
import type { CommandStreams } from "../shared/terminal.ts";
import { countUpTo, exitCode, listOf, newCommand, running, type RunCommand } from "./shared/command.ts";

/** With fewer texts, too many numbers of other texts fall outside the ranges. */
const leastTexts = 100;

/** `sheaf ranges FOLDER TEXTS`: embeds a sample of texts and writes the range of each number, for vectors in int8 and uint8. */
export const ranges: RunCommand = running(rangesCommand, async (command, { stdout }) => {
  const [folder, texts] = command.processedArgs as [string, string];
  const { dimensions: asked = [] } = command.opts<{ dimensions?: readonly number[] }>();
  const spec = await textFolderSpec(folder).catch((error: unknown) => {
    throw new CommandFailure((error as Error).message);
  });
  if (spec.output.kind !== "vector") throw new CommandFailure(`${folder} does not embed texts.`);
  const { length, dimensions = [] } = spec.output;
  const lengths = [...new Set([length, ...asked, ...(dimensions === "any" ? [] : dimensions)])];
  const wrong = asked.find(
    (one) => one > length || (one < length && dimensions !== "any" && !dimensions.includes(one)),
  );
  if (wrong !== undefined) throw new CommandFailure(`${folder} gives no vectors of ${wrong} dimensions.`);
  const found: Record<string, VectorRanges> = {};
  let count = 0;
  const embed = createBatcher(workerThread<string, { vector: Float32Array }>(spec.workerUrl, { data: spec.data }), {
    maxBatchSize: spec.batchSize ?? spec.maxBatchSize,
  });
  try {
    for await (const { vector } of embed.map(linesOf(texts))) {
      count++;
      for (const one of lengths)
        found[one] = widened(found[one], one === length ? ofLengthOne(vector) : shortened(vector, one));
    }
  } finally {
    await embed.close();
  }
  if (count < leastTexts)
    throw new CommandFailure(`${texts} has ${count} texts; ${leastTexts} or more show the range of a number.`);
  const file = join(folder, rangesFile);
  await writeFile(file, `${JSON.stringify(found)}\n`);
  stdout.write(`${file}: the ranges of ${lengths.join(", ")} dimensions, from ${count} texts.\n`);
  return exitCode.ok;
});

async function* linesOf(path: string): AsyncGenerator<string> {
  const input = createReadStream(path);
  try {
    for await (const line of createInterface({ input, crlfDelay: Infinity })) if (line.trim() !== "") yield line;
  } catch (error) {
    throw new CommandFailure(`${path} cannot be read: ${(error as Error).message}`);
  }
}

export function rangesCommand(streams: CommandStreams): Command {
  return newCommand("ranges", streams)
    .description(
      `Embeds a sample of texts and writes the range of each number into ${rangesFile} of the model's folder, for vectors in int8 and uint8.`,
    )
    .argument("<folder>", "the folder of a text model")
    .argument("<texts>", `a file with a text in each line, ${leastTexts} or more`)
    .option("--dimensions <list>", "shorter lengths too, of a model that gives any", listOf(countUpTo(65_536)));
}
