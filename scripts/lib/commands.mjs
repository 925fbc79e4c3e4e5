import { root } from "./files.mjs";

const cli = `${root}/packages/sheaf-server/dist/cli`;
const { shownDefault } = await import(`${cli}/shared/command.js`);
const { SettingOption } = await import(`${cli}/shared/setting-options.js`);

/** Every command of `sheaf` as it is built, by name: its flags and settings, as flagsOf gives them. */
export async function commandFlags() {
  const { commands } = await import(`${cli}/commands.js`);
  const { stdout, stderr } = process;
  const loaded = commands.map(async ({ name, load }) => [name, flagsOf((await load()).define({ stdout, stderr }))]);
  return new Map(await Promise.all(loaded));
}

/**
 * The flags of a command, as written with their placeholder (`--rate <n>`), each with its default as its help shows it;
 * undefined where it has none, or where prose says what it is. The flags of settings (`--max-batch-size` of
 * `MAX_BATCH_SIZE`) are apart, in `settings`: docs/reference/environment.md has them.
 */
export function flagsOf({ options }) {
  const flags = new Map();
  const settings = new Map();
  for (const option of options) {
    if (option instanceof SettingOption) settings.set(option.long, option.setting.env);
    else flags.set(option.flags, shownDefault(option));
  }
  return { flags, settings };
}
