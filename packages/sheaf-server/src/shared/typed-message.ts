import { BatcherError } from "sheaf";

/**
 * The message of an error, with the type of an exception from Python: such an error has the type as a name of its own, and
 * says little without it: `KeyError: 'x'`.
 */
export const typedMessage = (error: Error): string =>
  !(error instanceof BatcherError) && Object.hasOwn(error, "name") && error.name !== "Error"
    ? `${error.name}: ${error.message}`
    : error.message;
