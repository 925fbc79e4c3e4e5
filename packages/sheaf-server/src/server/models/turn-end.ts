/** Shares one `setImmediate` among all who wait for the end of a turn. */
export class TurnEnd {
  #end: Promise<void> | undefined;

  /** Resolves after the callbacks that were already due at the end of the turn. */
  reached(): Promise<void> {
    return (this.#end ??= new Promise((resolve) => {
      setImmediate(() => {
        this.#end = undefined;
        resolve();
      });
    }));
  }
}
