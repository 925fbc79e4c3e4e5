export type { PostgresClient, QueryClient, UnsafeClient } from "../shared/postgres/client.ts";
export type { TableName } from "../shared/postgres/identifier.ts";
export { lanceDbStore, type LanceDbOptions, type LanceTable } from "./lancedb.ts";
export { optimistic, type OptimisticOptions, type OptimisticStore } from "./optimistic.ts";
export { pgvectorStore, type ColumnFilter, type PgvectorOptions } from "./pgvector.ts";
export {
  qdrantStore,
  type QdrantClientLike,
  type QdrantFilter,
  type QdrantOptions,
  type QdrantPoint,
} from "./qdrant.ts";
export type {
  Metric,
  StoreBatcherOptions,
  VectorMatch,
  VectorPoint,
  VectorQuery,
  VectorStore,
  VectorStoreOptions,
} from "./store.ts";
