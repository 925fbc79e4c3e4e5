export { lanceDbStore, type LanceDbOptions, type LanceTable } from "./lancedb.ts";
export { optimistic, type OptimisticOptions, type OptimisticStore } from "./optimistic.ts";
export { pgvectorStore, type PgvectorOptions } from "./pgvector.ts";
export { qdrantStore, type QdrantClientLike, type QdrantOptions } from "./qdrant.ts";
export type { Metric, VectorMatch, VectorPoint, VectorQuery, VectorStore } from "./store.ts";
