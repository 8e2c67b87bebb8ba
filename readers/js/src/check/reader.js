/**
 * What a check reads: pages of the file in a bounded cache, read by code that never waits.
 *
 * Such code asks for bytes at once. If they are not here it stops by an exception, the page is loaded, and the step
 * that was interrupted is made again from its beginning. So the loops over millions of keys have no `await`.
 */

const PAGE_BYTES = 64 << 10;
/** Bytes of the file that a job keeps, unless told. */
const CACHE_BYTES = 48 << 20;

/** Thrown where a page is missing; there is one, since only one can be on its way. */
class Miss {
  constructor() {
    /** @type {Pages | null} */
    this.pages = null;
    this.page = 0;
    this.count = 1;
  }
}
const MISS = new Miss();

export class Pages {
  /**
   * @param {{bytes: number, read(offset: number, length: number): Promise<Uint8Array>}} source
   * @param {number} [pageBytes]
   * @param {number} [cacheBytes]
   */
  constructor(source, pageBytes = PAGE_BYTES, cacheBytes = CACHE_BYTES) {
    this.source = source;
    this.pageBytes = pageBytes;
    this.bytes = cacheBytes;
    this.most = cacheBytes / pageBytes;
    /** @type {Map<number, Uint8Array>} */
    this.pages = new Map();
    /** Pages that the step under way has loaded. They all stay, or a step that needs many would never end. */
    this.fresh = 0;
  }

  /**
   * @param {number} page
   * @param {number} ahead pages to read with it
   * @returns {Uint8Array}
   */
  get(page, ahead) {
    const found = this.pages.get(page);
    if (found) {
      return found;
    }
    MISS.pages = this;
    MISS.page = page;
    MISS.count = ahead;
    throw MISS;
  }

  async load() {
    const { page, count } = MISS;
    const start = page * this.pageBytes;
    const bytes = await this.source.read(start, Math.min(count * this.pageBytes, this.source.bytes - start));
    for (let at = 0; at < bytes.length; at += this.pageBytes) {
      // A page that is read again becomes the newest.
      this.pages.delete(page + at / this.pageBytes);
      this.pages.set(page + at / this.pageBytes, bytes.subarray(at, at + this.pageBytes));
      this.fresh += 1;
    }
    for (const oldest of this.pages.keys()) {
      if (this.pages.size <= Math.max(this.most, this.fresh)) {
        break;
      }
      this.pages.delete(oldest);
    }
  }
}

/** Reads one part of the file, mostly in order. Bytes are in `bytes` and `view`, at the place that `at` returns. */
export class Stream {
  /**
   * @param {Pages} pages
   * @param {number} [ahead] pages that are read at once
   */
  constructor(pages, ahead = 16) {
    this.pages = pages;
    this.ahead = ahead;
    this.start = 0;
    this.end = 0;
    /** @type {Uint8Array} */
    this.bytes = new Uint8Array(0);
    /** @type {DataView} */
    this.view = new DataView(new ArrayBuffer(0));
  }

  /**
   * Makes bytes of the file readable.
   * @param {number} offset
   * @param {number} length
   * @returns {number} their place in `bytes` and `view`
   */
  at(offset, length) {
    if (offset >= this.start && offset + length <= this.end) {
      return offset - this.start;
    }
    const { pageBytes } = this.pages;
    const page = Math.floor(offset / pageBytes);
    const inside = offset - page * pageBytes;
    if (inside + length <= pageBytes) {
      this.hold(this.pages.get(page, this.ahead), page * pageBytes);
      if (offset + length > this.end) {
        throw new RangeError('bytes behind the end of the file');
      }
      return inside;
    }
    const whole = new Uint8Array(length);
    let done = 0;
    for (let next = page; done < length; next++) {
      const bytes = this.pages.get(next, Math.max(this.ahead, Math.ceil(length / pageBytes) + 1));
      const part = bytes.subarray(next === page ? inside : 0, (next === page ? inside : 0) + length - done);
      if (part.length === 0) {
        throw new RangeError('bytes behind the end of the file');
      }
      whole.set(part, done);
      done += part.length;
    }
    this.hold(whole, offset);
    return 0;
  }

  /** @param {Uint8Array} bytes @param {number} start */
  hold(bytes, start) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.start = start;
    this.end = start + bytes.length;
  }

  /**
   * @param {number} offset
   * @param {number} length
   */
  slice(offset, length) {
    const at = this.at(offset, length);
    return this.bytes.subarray(at, at + length);
  }

  /**
   * Returns a number of 1, 2, 4 or 8 bytes. One of 8 that is beyond 2^53 is near to what is stored.
   * @param {number} offset
   * @param {number} width
   */
  number(offset, width) {
    const at = this.at(offset, width);
    switch (width) {
      case 1:
        return this.view.getUint8(at);
      case 2:
        return this.view.getUint16(at, true);
      case 4:
        return this.view.getUint32(at, true);
      default:
        return this.view.getUint32(at, true) + this.view.getUint32(at + 4, true) * 2 ** 32;
    }
  }
}

/** Milliseconds after which others get a turn: events of the page, other threads, or a wish to stop. */
const TURN_MS = 10;

/**
 * Returns a promise that is kept after events have had a turn. A timer would wait for 4 ms each time in browsers.
 * @type {() => Promise<void>}
 */
const turn = (() => {
  const { setImmediate } = /** @type {any} */ (globalThis);
  if (setImmediate) {
    return () => new Promise((resolve) => setImmediate(resolve));
  }
  /** @type {(() => void)[]} */
  const waiting = [];
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => waiting.shift()?.();
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      port2.postMessage(null);
    });
})();

/**
 * @typedef {{code: string, section: string, offset: number, length: number, expected: string, found: string,
 *   text: string}} Finding
 *
 * @typedef {object} JobOptions
 * @property {(bytes: number, what: string) => void} [advance] is told from time to time what was done since
 * @property {AbortSignal} [signal] without one, others get no turn
 * @property {number} [cacheBytes]
 */

/** Findings that are kept; further ones count as damage, too. */
export const FINDINGS_MAX = 1000;

/** A part of a check that is under way: its source, its findings, its progress. */
export class Job {
  /**
   * @param {{bytes: number, read(offset: number, length: number): Promise<Uint8Array>}} source
   * @param {JobOptions} options
   */
  constructor(source, options) {
    this.source = source;
    this.options = options;
    this.pages = new Pages(source, PAGE_BYTES, options.cacheBytes);
    /** @type {Finding[]} wrong sums, which make all else meaningless */
    this.sums = [];
    /** @type {Finding[]} rules that are broken under right sums */
    this.rules = [];
    /** @type {Finding[]} further ones, which come behind those of all parts of this kind */
    this.later = [];
    /** Bytes that were looked at, since this was told and in all. */
    this.done = 0;
    this.spent = 0;
    this.blocks = 0;
    this.what = '';
    this.turned = Date.now();
    /** Findings that stay if the step under way is interrupted. */
    this.kept = 0;
    this.keptLater = 0;
  }

  /**
   * @param {Finding[]} list
   * @param {Finding} finding
   */
  add(list, finding) {
    if (list.length < FINDINGS_MAX) {
      list.push(finding);
    }
  }

  /**
   * Notes a broken rule.
   * @param {string} code
   * @param {string} section
   * @param {number} offset
   * @param {number} length
   * @param {unknown} expected
   * @param {unknown} found
   * @param {string} text
   */
  rule(code, section, offset, length, expected, found, text) {
    this.add(this.rules, { code, section, offset, length, expected: String(expected), found: String(found), text });
  }

  /**
   * Notes a broken rule whose finding comes behind those of all parts of this kind.
   * @param {string} code
   * @param {string} section
   * @param {number} offset
   * @param {number} length
   * @param {unknown} expected
   * @param {unknown} found
   * @param {string} text
   */
  ruleLater(code, section, offset, length, expected, found, text) {
    this.add(this.later, { code, section, offset, length, expected: String(expected), found: String(found), text });
  }

  /** @param {number} bytes */
  advance(bytes) {
    this.done += bytes;
    this.spent += bytes;
  }

  /** Tells what was done since it was told last. */
  tell() {
    this.options.advance?.(this.done, this.what);
    this.done = 0;
  }

  /** Gives others a turn from time to time. Throws if the check is to stop. */
  async breathe() {
    if (Date.now() - this.turned >= TURN_MS) {
      this.tell();
      if (this.options.signal) {
        await turn();
      }
      this.turned = Date.now();
    }
    this.options.signal?.throwIfAborted();
  }

  /** Says that findings stay, whatever happens to the step under way. */
  keep() {
    this.kept = this.rules.length;
    this.keptLater = this.later.length;
  }

  /** Drops the findings of a step that was interrupted, or that was made to know where another one begins. */
  drop() {
    this.rules.length = this.kept;
    this.later.length = this.keptLater;
  }

  /**
   * Makes steps that may miss pages. A step that was interrupted has changed nothing but findings.
   * @param {number} from
   * @param {number} to
   * @param {(number: number) => void} step
   * @param {{weight?: number}} [options] `weight` is the bytes that a step counts for
   */
  async each(from, to, step, { weight = 0 } = {}) {
    let number = from;
    let missed = -1;
    while (number < to) {
      const end = Math.min(number + 64, to);
      const first = number;
      try {
        for (; number < end; number++) {
          this.keep();
          step(number);
        }
      } catch (error) {
        if (error !== MISS) {
          throw error;
        }
        this.drop();
        const pages = /** @type {Pages} */ (MISS.pages);
        pages.fresh = number === missed ? pages.fresh : 0;
        missed = number;
        await pages.load();
      }
      this.advance((number - first) * weight);
      await this.breathe();
    }
  }

  /**
   * Makes a single step that may miss pages.
   * @param {() => void} step
   */
  async once(step) {
    await this.each(0, 1, step);
  }

  /**
   * Passes a part of the file in pieces; the next one is read while one is looked at.
   * @param {number} offset
   * @param {number} length
   * @param {number} pieceBytes
   * @param {(at: number, bytes: Uint8Array) => Promise<void> | void} take
   */
  async pieces(offset, length, pieceBytes, take) {
    /** @param {number} at */
    const ask = (at) => (at < length ? this.source.read(offset + at, Math.min(pieceBytes, length - at)) : null);
    let next = ask(0);
    for (let at = 0; at < length; at += pieceBytes) {
      const bytes = /** @type {Uint8Array} */ (await next);
      next = ask(at + pieceBytes);
      next?.catch(() => {});
      await take(at, bytes);
      await this.breathe();
    }
  }

  /**
   * Checks that bytes are zero.
   * @param {string} tag
   * @param {number} from
   * @param {number} to
   * @param {string} [code]
   * @param {string} [text]
   */
  async zeros(tag, from, to, code = 'padding', text = 'padding must be zero') {
    await this.pieces(from, to - from, 1 << 20, (at, bytes) => {
      const bad = firstNonZero(bytes, 0, bytes.length);
      if (bad >= 0) {
        this.rule(code, tag, from + at + bad, 1, 0, bytes[bad], text);
      }
    });
  }
}

/**
 * Place of the first byte that is not zero; -1 if there is none.
 * @param {Uint8Array} bytes
 * @param {number} from
 * @param {number} to
 */
export function firstNonZero(bytes, from, to) {
  for (let at = from; at < to; at++) {
    if (bytes[at] !== 0) {
      return at;
    }
  }
  return -1;
}

/**
 * Reports whether two parts of memory are equal.
 * @param {Uint8Array} one
 * @param {Uint8Array} other
 */
export function areEqual(one, other) {
  if (one.length !== other.length) {
    return false;
  }
  for (let at = 0; at < one.length; at++) {
    if (one[at] !== other[at]) {
      return false;
    }
  }
  return true;
}

/**
 * Reports whether bytes are all ones.
 * @param {Uint8Array} bytes
 * @param {number} from
 * @param {number} to
 */
export function areOnes(bytes, from, to) {
  for (let at = from; at < to; at++) {
    if (bytes[at] !== 255) {
      return false;
    }
  }
  return true;
}
