import type { FileHandle } from "node:fs/promises";

/** A line of a file: its number from 1 on, and its bytes, which hold until the next line is asked for. */
export interface Line {
  readonly number: number;
  readonly bytes: Buffer;
}

const pieceBytes = 262_144;
const newline = 0x0a;

/**
 * The lines of a file from its beginning, without those of white space. One that is longer than `longest` has only its first
 * bytes, and is that much longer than it may be.
 */
export async function* linesOf(file: FileHandle, longest: number): AsyncGenerator<Line, void, void> {
  let number = 0;
  let position = 0;
  let rest: Buffer[] = [];
  let restBytes = 0;
  const piece = Buffer.allocUnsafeSlow(pieceBytes);
  for (;;) {
    const { bytesRead } = await file.read(piece, 0, pieceBytes, position);
    position += bytesRead;
    let from = 0;
    const keep = (bytes: Buffer): void => {
      if (restBytes > longest) return;
      rest.push(bytes);
      restBytes += bytes.length;
    };
    for (let end = piece.indexOf(newline); end !== -1 && end < bytesRead; end = piece.indexOf(newline, from)) {
      keep(piece.subarray(from, end));
      number++;
      const bytes = rest.length === 1 ? rest[0]! : Buffer.concat(rest, restBytes);
      [rest, restBytes, from] = [[], 0, end + 1];
      if (!isBlank(bytes)) yield { number, bytes };
    }
    // Copied: the next piece is read into the same memory.
    if (bytesRead > from) keep(Buffer.from(piece.subarray(from, bytesRead)));
    if (bytesRead > 0) continue;
    const last = Buffer.concat(rest, restBytes);
    if (!isBlank(last)) yield { number: number + 1, bytes: last };
    return;
  }
}

const isBlank = (bytes: Buffer): boolean => {
  for (const byte of bytes) if (byte !== 0x20 && byte !== 0x0d && byte !== 0x09) return false;
  return true;
};
