// Nest's style: a class with a batcher, compiled to CommonJS.
import { BatcherError, createBatcher, type Batcher } from "sheaf";

export class UsersService {
  readonly queries: number[][] = [];
  readonly #byId: Batcher<number, string> = createBatcher(
    async (ids: number[]) => {
      this.queries.push(ids);
      return ids.map((id) => (id < 0 ? new Error(`no user ${id}`) : `user ${id}`));
    },
    { timeoutMs: 5000 },
  );

  get(id: number): Promise<string> {
    return this.#byId(id);
  }

  static isTimeout(error: unknown): boolean {
    return error instanceof BatcherError && error.code === "TIMEOUT";
  }
}
