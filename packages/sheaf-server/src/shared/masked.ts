const hidden = "…";

/** Names of headers and of a URL's parameters whose values are no secrets. */
const openHeader = /^(?:accept|content-type|host|origin|user-agent|x-request-timeout-ms|x-sheaf-priority|x-tenant)$/i;
const secretName = /key|token|secret|passw|credential|signature|^sig$|auth/i;

/** A text that may hold URLs, to be shown: without the user and password of any, and without parameters that are named like secrets. */
export const masked = (text: string): string =>
  text
    .replaceAll(/\/\/[^/@,\s]*@/g, `//${hidden}@`)
    .replaceAll(/([?&])([^?=&#\s]*)=[^&#\s]*/g, (whole, separator: string, name: string) =>
      secretName.test(name) ? `${separator}${name}=${hidden}` : whole,
    );

/** The words of a command line, to be shown: of a header only its name, unless its value is known to be harmless. */
export function maskedWords(words: readonly string[]): string[] {
  return words.map((word, i) => {
    const flag = /^--[\w-]+(?==)/.exec(word)?.[0];
    const [name, value] = flag === undefined ? [words[i - 1] ?? "", word] : [flag, word.slice(flag.length + 1)];
    const shown = maskedValue(name, value);
    return flag === undefined ? shown : `${flag}=${shown}`;
  });
}

function maskedValue(flag: string, value: string): string {
  if (flag === "--header") {
    const [name = ""] = value.split(":", 1);
    return openHeader.test(name.trim()) ? value : `${name}: ${hidden}`;
  }
  // Not --api-keys-file: the path of a file is none.
  return /^--(?:[\w-]+-)?(?:key|token|password|secret)$/.test(flag) ? hidden : masked(value);
}
