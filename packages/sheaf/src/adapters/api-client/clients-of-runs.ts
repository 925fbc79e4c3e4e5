import type { Reply } from "./rate-limited.ts";

type Fetch = typeof globalThis.fetch;

/** A client and the replies that its `fetch` has received in the current run. */
interface Hearing<Client> {
  readonly client: Client;
  heard: Reply;
}

/** A reply states its token count near its beginning or end; the vectors stand in between. */
const searchedCharacters = 2000;
const countedTokens = /"usage"\s*:\s*\{[^{}]*?"(?:total|prompt)_tokens"\s*:\s*(\d{1,12})/;

/**
 * Creates clients that hide their replies with a `fetch` that reads them. Each run uses a client of its own, so that replies belong
 * to that run; there are as many clients as concurrent runs.
 */
export class ClientsOfRuns<Client> {
  readonly #make: (fetch: Fetch) => Client;
  readonly #idle: Hearing<Client>[] = [];

  constructor(make: (fetch: Fetch) => Client) {
    this.#make = make;
    this.#idle.push(this.#open());
  }

  /** Passes the headers and the token count to `replied`, whether the run fails or not. */
  async run<Results>(use: (client: Client) => Promise<Results>, replied: (reply: Reply) => void): Promise<Results> {
    const hearing = this.#idle.pop() ?? this.#open();
    hearing.heard = {};
    try {
      return await use(hearing.client);
    } finally {
      replied(hearing.heard);
      this.#idle.push(hearing);
    }
  }

  #open(): Hearing<Client> {
    const fetch: Fetch = async (input, init) => {
      const response = await globalThis.fetch(input, init);
      const { status, statusText, headers } = response;
      const text = await response.text();
      const tokens = response.ok ? tokensIn(text) : undefined;
      const { tokens: before = 0 } = hearing.heard;
      hearing.heard = { headers, tokens: tokens === undefined ? hearing.heard.tokens : before + tokens };
      // Some statuses allow no body, not even an empty one.
      return new Response(text === "" ? null : text, { status, statusText, headers });
    };
    const hearing: Hearing<Client> = { client: this.#make(fetch), heard: {} };
    return hearing;
  }
}

function tokensIn(text: string): number | undefined {
  const found = countedTokens.exec(text.slice(-searchedCharacters)) ?? countedTokens.exec(text.slice(0, searchedCharacters)); // prettier-ignore
  return found === null ? undefined : Number(found[1]);
}
