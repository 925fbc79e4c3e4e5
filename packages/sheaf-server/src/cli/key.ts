import { randomBytes } from "node:crypto";
import type { Command } from "commander";
import { UsageError } from "../shared/failure.ts";
import type { CommandStreams } from "../shared/terminal.ts";
import { digestOf } from "../tenants/api-keys.ts";
import { isName, ownKeyName, type KeyEntry } from "../tenants/keys-file.ts";
import { exitCode, newCommand, running, type RunCommand } from "./shared/command.ts";

/** `sheaf key NAME`: makes a key and its entry for the file of keys, which holds only the hash. */
export const key: RunCommand = running(keyCommand, async (command, { stdout }) => {
  const [name] = command.processedArgs as [string];
  if (!isName(name) || name === ownKeyName)
    throw new UsageError(`NAME must have 1 to 64 characters without control characters, and not ${ownKeyName}.`);
  // 256 random bits: nobody guesses it, and nobody finds it by its hash.
  const made = `sheaf-${randomBytes(32).toString("base64url")}`;
  const entry: KeyEntry = { name, sha256: digestOf(made).toString("hex") };
  const { json } = command.opts<{ json?: true }>();
  stdout.write(
    json === true
      ? `${JSON.stringify({ key: made, entry })}\n`
      : `key    ${made}\nentry  ${JSON.stringify(entry)}\n\nGive the key to ${name}: it is not shown again. Put the entry into "keys" of API_KEYS_FILE.\n`,
  );
  return exitCode.ok;
});

export function keyCommand(streams: CommandStreams): Command {
  return newCommand("key", streams)
    .description("Generates an API key and its entry for API_KEYS_FILE, which holds only the hash of the key.")
    .argument("<name>", "the name of the key, which is its tenant")
    .option("--json", "print as JSON");
}
