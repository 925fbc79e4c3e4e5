import type { Chunk, List } from "./chunk.ts";

/** Linked chunks in which calls wait. A chunk leaves when none of its calls is left waiting. */
export class ChunkList<In> implements List<In> {
  head: Chunk<In> | undefined;
  tail: Chunk<In> | undefined;

  append(chunk: Chunk<In>): void {
    chunk.list = this;
    chunk.previous = this.tail;
    if (this.tail === undefined) this.head = chunk;
    else this.tail.next = chunk;
    this.tail = chunk;
  }

  /** Puts a chunk in front of another, or at the end. */
  insert(chunk: Chunk<In>, next: Chunk<In> | undefined): void {
    if (next === undefined) return this.append(chunk);
    const { previous } = next;
    chunk.list = this;
    chunk.next = next;
    chunk.previous = previous;
    next.previous = chunk;
    if (previous === undefined) this.head = chunk;
    else previous.next = chunk;
  }

  unlink(chunk: Chunk<In>): void {
    const { previous, next } = chunk;
    if (previous === undefined) this.head = next;
    else previous.next = next;
    if (next === undefined) this.tail = previous;
    else next.previous = previous;
    chunk.laneQueue = chunk.list = chunk.previous = chunk.next = undefined;
  }

  /** The visitor may empty the chunk, which unlinks it; a clock that calls the batcher meanwhile may empty others. */
  everyChunk(visit: (chunk: Chunk<In>) => void): void {
    const chunks: Chunk<In>[] = [];
    for (let chunk = this.head; chunk !== undefined; chunk = chunk.next) chunks.push(chunk);
    for (const chunk of chunks) if (chunk.list === this) visit(chunk);
  }
}
