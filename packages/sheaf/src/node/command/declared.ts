import { readDeclaration, signatureOf, type WorkerDeclaration } from "./declaration.ts";

/** The declaration of a pool's first instance, which binds all later ones because requests are checked against it. */
export class Declared {
  first: WorkerDeclaration | undefined;

  /** @throws {TypeError} it cannot be read. {Error} it differs from the first. */
  accept(ready: Readonly<Record<string, unknown>>): WorkerDeclaration {
    const declaration = readDeclaration(ready);
    this.first ??= declaration;
    const [was, is] = [this.first, declaration].map(signatureOf);
    if (was === is) return declaration;
    throw new Error(`a restarted worker declares ${is}, but the first one declared ${was}`);
  }
}
