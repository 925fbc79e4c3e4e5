/** One viewer of a page's event stream. */
export interface Viewer {
  /** The next event of that name. @throws when the stream ends before it */
  next(name: string): Promise<any>;
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>;
  leave(): void;
}

export async function view(url: string, headers: Record<string, string> = {}): Promise<Viewer> {
  const controller = new AbortController();
  const response = await fetch(`${url}/dashboard/events`, { headers, signal: controller.signal });
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  const events: { readonly name: string; readonly data: unknown }[] = [];
  let wake = (): void => undefined;
  let isOver = false;
  const ended = (async () => {
    let text = "";
    const decoder = new TextDecoder();
    for await (const bytes of response.body!) {
      text += decoder.decode(bytes as Uint8Array, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop()!;
      for (const block of blocks) {
        const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? [];
        if (name !== undefined) events.push({ name, data: JSON.parse(data!) });
      }
      wake();
    }
  })()
    .catch(() => undefined)
    .finally(() => {
      isOver = true;
      wake();
    });
  return {
    next: async (name) => {
      for (;;) {
        const found = events.findIndex((event) => event.name === name);
        if (found >= 0) return events.splice(0, found + 1).at(-1)!.data;
        if (isOver) throw new Error(`The stream ended before ${name}.`);
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
    ended,
    leave: () => controller.abort(),
  };
}
