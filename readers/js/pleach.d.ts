/** A reader of Pleach files for browsers and node, without dependencies. README.md has examples. */

/** A number for types of 32 bits and floats, a BigInt for 64 and 128 bits, a string for `utf8`, else bytes. */
export type Key = number | bigint | string | Uint8Array;
export type Value = number | bigint | string | Uint8Array | null;

export interface Tuple {
  /** Position in key order, from 0. */
  rank: number;
  key: Key;
  /** null in a file without values. */
  value: Value;
}

/** Where bytes come from. Anything with these two members will do. */
export interface Source {
  /** Length of the file. */
  readonly bytes: number;
  /** Returns exactly so many bytes, or throws a SourceError. */
  read(offset: number, length: number): Promise<Uint8Array>;
}

/** A source that counts what it does. */
export interface CountedSource extends Source {
  reads: number;
  bytesRead: number;
}

export class BytesSource implements CountedSource {
  constructor(memory: Uint8Array);
  readonly bytes: number;
  reads: number;
  bytesRead: number;
  read(offset: number, length: number): Promise<Uint8Array>;
}

export class BlobSource implements CountedSource {
  constructor(blob: Blob);
  readonly bytes: number;
  reads: number;
  bytesRead: number;
  read(offset: number, length: number): Promise<Uint8Array>;
}

export interface HttpOptions {
  /** Used in the place of the global `fetch`. */
  fetch?: typeof fetch;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

/** A file on a web server that answers range requests. */
export class HttpSource implements CountedSource {
  /** Asks for the first bytes, from which the length of the file is known. */
  static open(url: string, options?: HttpOptions, firstBytes?: number): Promise<HttpSource>;
  readonly url: string;
  readonly bytes: number;
  reads: number;
  bytesRead: number;
  read(offset: number, length: number): Promise<Uint8Array>;
}

export interface OpenOptions {
  /** False believes blocks without looking at their sums. */
  verify?: boolean;
  /** Bytes of blocks that are kept; 16 MiB unless told. */
  cacheBytes?: number;
}

/** Names of the structures by which keys are found. */
export type Structure = 'lines' | 'spine' | 'grid' | 'fast' | 'harmonia' | 'btree' | 'trie';

export class Pleach {
  /** Opens a file. Throws a Refusal, a Damage or a SourceError. */
  static open(from: Uint8Array | ArrayBuffer | Blob | Source, options?: OpenOptions): Promise<Pleach>;
  readonly tuples: number;
  /** Name of the key type, such as `u64` or `bytes16`. */
  readonly keyType: string;
  /** Name of the value type; `none` without values. */
  readonly valueType: string;
  readonly structures: Structure[];
  /** What META says: names, logical types, layout. Empty texts where it says nothing. */
  readonly meta: {
    keyName: string;
    valueName: string;
    keyLogical: string;
    valueLogical: string;
    layout: string;
    interval: string;
    approximate: string;
  };
  /** Returns the first tuple with a key. */
  get(key: Key): Promise<Tuple | null>;
  /** Returns how many tuples have smaller keys. */
  lower(key: Key, options?: { by?: Structure }): Promise<number>;
  /** Returns how many tuples have smaller or equal keys. */
  upper(key: Key): Promise<number>;
  /** Returns the last tuple whose key is at most this. */
  floor(key: Key): Promise<Tuple | null>;
  /** Returns the tuple of a rank. */
  at(rank: number): Promise<Tuple | null>;
  keyAt(rank: number): Promise<Key>;
  valueAt(rank: number): Promise<Value>;
  /** Yields the tuples of the ranks from `first` up to, not with, `end`. */
  ranks(first: number, end: number): AsyncGenerator<Tuple>;
  /** Yields the tuples from one key up to, not with, another; null leaves an end open. */
  range(from: Key | null, to: Key | null): AsyncGenerator<Tuple>;
  /** Reads a key from a text, by the logical type if there is one. */
  parseKey(text: string): Key | null;
  /** Prints a key by the logical type. */
  formatKey(key: Key): string;
  /** Prints a value by the logical type, or the fields of a record. */
  formatValue(value: Value): string;
  /** Returns the fields of a record value; none if values are no records. */
  fields(value: Value): (number | bigint | string | Uint8Array)[];
}

export interface Finding {
  /** The rule that is broken, as `pleach fsck` names it. */
  code: string;
  section: string;
  /** First byte in the file, and how many bytes are concerned. */
  offset: number;
  length: number;
  expected: string;
  found: string;
  text: string;
}

export interface Report {
  verdict: 'clean' | 'damaged' | 'foreign' | 'newer';
  /** In file order, at most 1000. */
  findings: Finding[];
  /** Blocks whose sums were compared. */
  blocks: number;
  bytes: number;
  tuples: number | null;
}

export interface CheckOptions {
  /** Is called from time to time with bytes done, bytes in all and what is looked at. */
  progress?: (done: number, all: number, what: string) => void;
  /** Stops the check: it throws the signal's reason. */
  signal?: AbortSignal;
  /** Other threads, which call `checkPart`. Each has one task at a time. This thread works, too. */
  helpers?: CheckHelper[];
  /** Bytes of a task, if there are helpers. */
  partBytes?: number;
}

/** A part of a check, which can be sent to another thread, as its result can be sent back. */
export interface CheckTask {
  head: Uint8Array;
  bytes: number;
  cacheBytes: number;
  part: { phase: number; kind: number; from: number; to: number };
}

export interface CheckResult {
  sums: Finding[];
  rules: Finding[];
  later: Finding[];
  blocks: number;
  value: unknown;
}

/** Has a task done, and is told from time to time how many bytes more are done. */
export type CheckHelper = (task: CheckTask, advance: (bytes: number, what: string) => void) => Promise<CheckResult>;

/** Checks a whole file: every sum, then every rule. */
export function check(from: Uint8Array | ArrayBuffer | Blob | Source, options?: CheckOptions): Promise<Report>;

/** Runs a part of a check of a file, for a helper. */
export function checkPart(
  from: Uint8Array | ArrayBuffer | Blob | Source,
  task: CheckTask,
  options?: { advance?: (bytes: number, what: string) => void; signal?: AbortSignal },
): Promise<CheckResult>;

/** Names and sentences of the rules by which files are refused; rule 1 is at index 0. */
export const RULES: [name: string, sentence: string][];

/** The file breaks a rule on which reading depends. */
export class Refusal extends Error {
  readonly rule: string;
  readonly number: number;
}

/** Bytes do not match their sum, or contradict each other. */
export class Damage extends Error {
  readonly code: string;
  readonly section: string;
  readonly offset: number;
}

/** The bytes could not be read, which says nothing about the file. */
export class SourceError extends Error {
  readonly kind: 'read' | 'changed' | 'no-ranges' | 'encoded' | 'blocked' | 'missing' | 'network' | 'status';
}
