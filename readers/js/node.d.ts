import type { CountedSource } from './pleach.js';

/** A file of node, read by position. */
export class FileSource implements CountedSource {
  static open(path: string): Promise<FileSource>;
  readonly bytes: number;
  reads: number;
  bytesRead: number;
  read(offset: number, length: number): Promise<Uint8Array>;
  close(): Promise<void>;
}
