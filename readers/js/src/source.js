/**
 * Where bytes come from: memory, a `Blob`, or a web server that answers range requests.
 *
 * A source has `bytes`, the length of the file, and `read(offset, length)`, which returns exactly so many bytes or
 * throws a SourceError. The counters `reads` and `bytesRead` are for measurements.
 */
import { SourceError } from './error.js';

/** What all sources have in common: bounds, and counters for measurements. */
export class Counted {
  constructor() {
    /** @type {number} */
    this.bytes = 0;
    this.reads = 0;
    this.bytesRead = 0;
  }

  /**
   * @param {number} offset
   * @param {number} length
   */
  async read(offset, length) {
    if (!(offset >= 0 && offset + length <= this.bytes)) {
      throw new SourceError('read', `bytes ${offset} to ${offset + length} are not in the file`);
    }
    if (length === 0) {
      return new Uint8Array(0);
    }
    this.reads += 1;
    this.bytesRead += length;
    const found = await this.fetch(offset, length);
    if (found.length !== length) {
      throw new SourceError('read', `${length} bytes were asked for at byte ${offset}, ${found.length} came`);
    }
    return found;
  }

  /**
   * @param {number} _offset
   * @param {number} _length
   * @returns {Promise<Uint8Array>}
   */
  async fetch(_offset, _length) {
    throw new SourceError('read', 'this source has no bytes');
  }
}

/** Bytes in memory. */
export class BytesSource extends Counted {
  /** @param {Uint8Array} memory */
  constructor(memory) {
    super();
    this.memory = memory;
    this.bytes = memory.length;
  }

  /**
   * @param {number} offset
   * @param {number} length
   */
  async fetch(offset, length) {
    return this.memory.slice(offset, offset + length);
  }
}

/** A `Blob` or `File` of a browser or of node, of which slices are read. */
export class BlobSource extends Counted {
  /** @param {Blob} blob */
  constructor(blob) {
    super();
    this.blob = blob;
    this.bytes = blob.size;
  }

  /**
   * @param {number} offset
   * @param {number} length
   */
  async fetch(offset, length) {
    try {
      return new Uint8Array(await this.blob.slice(offset, offset + length).arrayBuffer());
    } catch (error) {
      // A browser refuses to read a file that has changed since it was chosen.
      const text = 'the file cannot be read any more: it was changed or removed after it was chosen';
      throw new SourceError('changed', `${text} (${error instanceof Error ? error.name : error})`);
    }
  }
}

/**
 * A file on a web server. Every answer must be the range that was asked for, of the same file: the first answer
 * names the file by its ETag or its time, and the others must name it so, too. Requests to the own origin, or from
 * outside of a browser, also carry that as a condition. To other origins they do not, since a browser would ask
 * the server for permission first, which most static servers do not answer.
 */
export class HttpSource extends Counted {
  /**
   * @param {string} url
   * @param {{fetch?: typeof fetch, signal?: AbortSignal, headers?: Record<string, string>}} [options]
   */
  constructor(url, options = {}) {
    super();
    this.url = url;
    this.options = options;
    /** @type {string | null} */
    this.tag = null;
    /** @type {string | null} */
    this.time = null;
    this.isKnown = false;
    const origin = /** @type {any} */ (globalThis).location?.origin;
    this.isOwn = origin === undefined || new URL(url, origin === 'null' ? undefined : origin).origin === origin;
    /** @type {Uint8Array | null} */
    this.start = null;
  }

  /**
   * Asks for the first bytes, from which the length of the file is known.
   * @param {string} url
   * @param {{fetch?: typeof fetch, signal?: AbortSignal, headers?: Record<string, string>}} [options]
   * @param {number} [firstBytes]
   */
  static async open(url, options = {}, firstBytes = 16384) {
    const source = new HttpSource(url, options);
    source.start = await source.range(0, firstBytes);
    source.reads += 1;
    source.bytesRead += source.start.length;
    return source;
  }

  /**
   * Makes a source of a file that another one has opened, which must still be the same.
   * @param {{url: string, bytes: number, tag: string | null, time: string | null}} known
   */
  static known({ url, bytes, tag, time }) {
    return Object.assign(new HttpSource(url), { bytes, tag, time, isKnown: true });
  }

  /**
   * @param {number} offset
   * @param {number} length
   */
  async fetch(offset, length) {
    if (this.start && offset + length <= this.start.length) {
      // These bytes have come, and have been counted, with the first answer.
      this.reads -= 1;
      this.bytesRead -= length;
      return this.start.slice(offset, offset + length);
    }
    return this.range(offset, length);
  }

  /**
   * @param {number} offset
   * @param {number} length
   */
  async range(offset, length) {
    const headers = new Headers(this.options.headers);
    headers.set('Range', `bytes=${offset}-${offset + length - 1}`);
    if (this.isOwn && this.tag && !this.tag.startsWith('W/')) {
      headers.set('If-Match', this.tag);
    } else if (this.isOwn && this.time) {
      headers.set('If-Unmodified-Since', this.time);
    }
    const answer = await this.ask('GET', headers);
    this.check(answer);
    await this.identify(answer, offset, length);
    try {
      return new Uint8Array(await answer.arrayBuffer());
    } catch (error) {
      throw await this.unreachable(error);
    }
  }

  /**
   * @param {string} method
   * @param {Headers} headers
   * @returns {Promise<Response>}
   */
  async ask(method, headers) {
    try {
      const signal = this.options.signal ?? null;
      return await (this.options.fetch ?? fetch)(this.url, { method, headers, cache: 'no-store', signal });
    } catch (error) {
      throw method === 'HEAD' ? error : await this.unreachable(error);
    }
  }

  /**
   * Returns why there was no answer. A part of a compressed file cannot be unpacked, which looks like a broken
   * connection; the head alone shows it.
   * @param {unknown} error
   */
  async unreachable(error) {
    if (error instanceof Error && error.name === 'AbortError') {
      return error;
    }
    const head = await this.ask('HEAD', new Headers(this.options.headers)).catch(() => null);
    const encoding = head?.headers.get('content-encoding');
    if (encoding && encoding !== 'identity') {
      return this.encoded(encoding);
    }
    if (this.isOwn) {
      return new SourceError('network', 'the server did not answer, or the connection broke');
    }
    const text = 'the server did not answer, or does not let pages of other origins read its files';
    return new SourceError('network', `${text}: it must send Access-Control-Allow-Origin`);
  }

  /** @param {Response} answer */
  check(answer) {
    if (answer.status === 412 || (answer.status === 416 && this.isKnown)) {
      throw this.changed();
    }
    if (answer.status === 404 || answer.status === 410) {
      const gone = 'the file was removed from the server while it was read';
      throw new SourceError('missing', this.isKnown ? gone : `the server has no file of this name (${answer.status})`);
    }
    if (answer.status === 401 || answer.status === 403) {
      throw new SourceError('blocked', `the server does not give the file away (${answer.status})`);
    }
    if (answer.status === 416) {
      throw new SourceError('status', 'the file on the server is empty');
    }
    const encoding = answer.headers.get('content-encoding');
    if (encoding && encoding !== 'identity') {
      throw this.encoded(encoding);
    }
    if (answer.status === 200) {
      const text = 'the server sends the whole file instead of the range that was asked for (200 in place of 206)';
      throw new SourceError('no-ranges', `${text}: use one that answers range requests`);
    }
    if (answer.status !== 206) {
      throw new SourceError('status', `the server answered with status ${answer.status} instead of a range`);
    }
  }

  /** @param {string} encoding */
  encoded(encoding) {
    const text = `the server compresses the file on its way (content-encoding: ${encoding})`;
    return new SourceError('encoded', `${text}: switch that off for this file`);
  }

  changed() {
    return new SourceError('changed', 'the file on the server was replaced while it was read: open it again');
  }

  /**
   * Returns first byte, end and length of the file that an answer shows. Pages of other origins may not see them.
   * @param {Response} answer
   * @param {number} offset
   * @param {number} length
   */
  async shown(answer, offset, length) {
    const range = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(answer.headers.get('content-range') ?? '');
    if (range) {
      return { first: Number(range[1]), end: Number(range[2]) + 1, bytes: Number(range[3]) };
    }
    if (this.isOwn) {
      throw new SourceError('no-ranges', 'the server does not say which range it sends (Content-Range)');
    }
    let bytes = this.bytes;
    if (!this.isKnown) {
      const head = await this.ask('HEAD', new Headers(this.options.headers)).catch(() => null);
      bytes = Number(head?.headers.get('content-length') ?? NaN);
      if (!head?.ok || !(bytes > 0) || (head.headers.get('content-encoding') ?? 'identity') !== 'identity') {
        const text = 'the server does not tell pages of other origins how long the file is';
        throw new SourceError('blocked', `${text}: let it send Access-Control-Expose-Headers: Content-Range, ETag`);
      }
    }
    return { first: offset, end: Math.min(offset + length, bytes), bytes };
  }

  /**
   * @param {Response} answer
   * @param {number} offset
   * @param {number} length
   */
  async identify(answer, offset, length) {
    const { first, end, bytes } = await this.shown(answer, offset, length);
    const [tag, time] = [answer.headers.get('etag'), answer.headers.get('last-modified')];
    if (this.isKnown && (bytes !== this.bytes || tag !== this.tag || time !== this.time)) {
      throw this.changed();
    }
    const size = answer.headers.get('content-length');
    if (first !== offset || end !== Math.min(offset + length, bytes) || (size && Number(size) !== end - first)) {
      throw new SourceError('no-ranges', 'the server sends another range than the one that was asked for');
    }
    this.isKnown = true;
    Object.assign(this, { bytes, tag, time });
  }
}

/**
 * Makes a source of what was given.
 * @param {unknown} from bytes, a `Blob` or a source
 */
export function sourceOf(from) {
  if (from instanceof Uint8Array) {
    return new BytesSource(from);
  }
  if (from instanceof ArrayBuffer) {
    return new BytesSource(new Uint8Array(from));
  }
  if (typeof Blob !== 'undefined' && from instanceof Blob) {
    return new BlobSource(from);
  }
  return /** @type {Counted} */ (from);
}
