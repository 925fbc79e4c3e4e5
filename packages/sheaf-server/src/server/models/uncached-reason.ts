import type { ModelDefinition } from "../contract/model-definition.ts";
import type { Settings } from "../../settings/settings.ts";
import { roleOf } from "../../settings/role.ts";

/** Why results of a model are not cached although CACHE_MAX_BYTES is set; undefined if they are. */
export function uncachedReason(definition: ModelDefinition, settings: Settings): string | undefined {
  const { isCacheable, selfTest, maxBatchSize } = definition;
  if (roleOf(settings) === "worker") return "the gateways of its fleet keep them";
  if (isCacheable === false) return "it says that its results are not to be kept";
  if (isCacheable === true) return undefined;
  if (selfTest === "not-deterministic") return "its self-test found that it is not deterministic";
  if (selfTest === "dependent" && maxBatchSize !== 1) return "its results depend on their batch-mates";
  if (selfTest === undefined && roleOf(settings) !== "alone") return "only its workers know whether they may be kept";
  return undefined;
}
