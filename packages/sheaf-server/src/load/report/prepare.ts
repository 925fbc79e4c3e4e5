import { constants } from "node:fs";
import { access, mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { CommandFailure } from "../../shared/failure.ts";
import { checkDrawable } from "./render.ts";
import type { ReportFiles } from "./write.ts";

/**
 * Makes the folders of a report, before anything is measured for it.
 * @throws {CommandFailure} if its charts could not be drawn, or a file could not be written.
 */
export async function prepareReport({ report, svg }: ReportFiles): Promise<void> {
  if (report !== undefined || svg !== undefined) checkDrawable();
  if (report !== undefined) {
    await checkFolder(dirname(report), report);
    const isFolder = await stat(report).then(
      (found) => found.isDirectory(),
      () => false,
    );
    if (isFolder) throw new CommandFailure(`${report} cannot be written: it is a folder.`);
  }
  if (svg !== undefined) await checkFolder(svg, svg);
}

async function checkFolder(folder: string, path: string): Promise<void> {
  try {
    await makeFolder(folder);
    await access(folder, constants.W_OK);
  } catch (error) {
    throw new CommandFailure(`${path} cannot be written: ${(error as Error).message}`);
  }
}

/** With its parents. Node's own `recursive` never ends where a folder cannot be made in an existing one (/proc). */
async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" && (await stat(folder)).isDirectory()) return;
    if (code !== "ENOENT" || dirname(folder) === folder) throw error;
    await makeFolder(dirname(folder));
    await mkdir(folder);
  }
}
