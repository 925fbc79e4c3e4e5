export { httpStatusOf } from "../adapters/http/item-error.ts";
export { priorities } from "../core/contract/settings.ts";
