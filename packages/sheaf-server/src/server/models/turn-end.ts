/** The end of the current turn of the event loop, for all who wait for it. */
export class TurnEnd {
  #end: Promise<void> | undefined;

  /** Resolves after the callbacks that were due at the end of the turn before this was called. */
  reached(): Promise<void> {
    return (this.#end ??= new Promise((resolve) => {
      setImmediate(() => {
        this.#end = undefined;
        resolve();
      });
    }));
  }
}
