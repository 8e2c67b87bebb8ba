/**
 * Checks of TEXT. A page is decoded, and each of its fields must be the one that follows from its keys; only the codes
 * are free.
 */
import { SYMBOLS_BYTES, TEXT_PAGE_KEYS } from '../shape.js';
import {
  ESCAPE,
  FIRST_AT,
  HEAD_AT,
  HEAD_AT_WIDE,
  KEY_BYTES_MAX,
  LENGTHS_AT,
  PLAIN,
  PRINTS_AT,
  SHARED_AT,
  Symbols,
  TextPage,
  WIDE,
  commonBytes,
  printOf,
} from '../text.js';
import { Stream, firstNonZero } from './reader.js';

/**
 * @typedef {import('./reader.js').Job} Job
 * @typedef {import('../header.js').Header} Header
 */

const PAGE_BYTES_MAX = HEAD_AT_WIDE + TEXT_PAGE_KEYS * KEY_BYTES_MAX;

/** Pages of TEXT, read mostly in order. */
export class TextReader {
  /**
   * @param {Job} job
   * @param {Header} header
   */
  constructor(job, header) {
    const { offset, shape } = /** @type {import('../header.js').Placed<import('../shape.js').TextShape>} */ (
      header.text
    );
    this.offset = offset;
    this.shape = shape;
    this.tuples = header.tuples;
    this.places = new Stream(job.pages);
    this.data = new Stream(job.pages);
    /** @type {Symbols | null} */
    this.symbols = null;
    this.page = -1;
    /** @type {TextPage | null} */
    this.held = null;
  }

  /** Start and end of a page in the data, as they are stored. @param {number} page @returns {[number, number]} */
  bounds(page) {
    const { placeBytes } = this.shape;
    const at = this.offset + SYMBOLS_BYTES + page * placeBytes;
    return [this.places.number(at, placeBytes), this.places.number(at + placeBytes, placeBytes)];
  }

  /** @param {[number, number]} bounds */
  isSound([start, end]) {
    return start <= end && end <= this.shape.dataBytes && end - start <= PAGE_BYTES_MAX;
  }

  /** Number of keys of a page. @param {number} page */
  keysOf(page) {
    return Math.min(this.tuples - page * TEXT_PAGE_KEYS, TEXT_PAGE_KEYS);
  }

  table() {
    this.symbols ??= new Symbols(this.data.slice(this.offset, SYMBOLS_BYTES).slice());
    return this.symbols;
  }

  /** Returns a page; null if its place is not valid. @param {number} page */
  pageOf(page) {
    if (page === this.page) {
      return this.held;
    }
    const symbols = this.table();
    const bounds = this.bounds(page);
    let held = null;
    if (this.isSound(bounds)) {
      const bytes = this.data.slice(this.offset + this.shape.pagesAt + bounds[0], bounds[1] - bounds[0]);
      held = new TextPage(bytes, this.keysOf(page), symbols);
    }
    this.page = page;
    this.held = held;
    return held;
  }

  /** Returns a key; null if the place of its page is not valid. @param {number} rank */
  key(rank) {
    return this.pageOf(Math.floor(rank / TEXT_PAGE_KEYS))?.key(rank % TEXT_PAGE_KEYS) ?? null;
  }

  /** Where the page of a rank is in the file. @param {number} rank */
  place(rank) {
    const [start] = this.bounds(Math.floor(rank / TEXT_PAGE_KEYS));
    return this.offset + this.shape.pagesAt + Math.min(start, this.shape.dataBytes);
  }
}

/**
 * Checks what TEXT has around its pages.
 * @param {Job} job
 * @param {Header} header
 */
export async function checkTextFrame(job, header) {
  if (!header.text) {
    return;
  }
  const { offset, shape } = header.text;
  await checkSymbols(job, offset);
  const places = offset + SYMBOLS_BYTES + (shape.pages + 1) * shape.placeBytes;
  await job.zeros('TEXT', places, offset + shape.pagesAt);
  const guard = offset + shape.pagesAt + shape.dataBytes;
  await job.zeros('TEXT', guard, guard + 64);
  const reader = new TextReader(job, header);
  await job.once(() => {
    for (const [page, expected] of [
      [0, 0],
      [shape.pages, shape.dataBytes],
    ]) {
      const at = offset + SYMBOLS_BYTES + page * shape.placeBytes;
      const found = reader.places.number(at, shape.placeBytes);
      if (found !== expected) {
        job.rule('text', 'TEXT', at, shape.placeBytes, expected, found, 'places must cover the pages');
      }
    }
  });
}

/**
 * Checks a page, and reports what is wrong with it.
 * @param {Job} job
 * @param {TextReader} reader
 * @param {number} page
 */
export function checkPage(job, reader, page) {
  const { offset, shape } = reader;
  const bounds = reader.bounds(page);
  if (bounds[0] >= bounds[1] || !reader.isSound(bounds)) {
    const at = offset + SYMBOLS_BYTES + page * shape.placeBytes;
    const text = 'places must ascend by the bytes of a page';
    job.ruleLater('text', 'TEXT', at, 2 * shape.placeBytes, `above ${bounds[0]}`, bounds[1], text);
    return;
  }
  const start = offset + shape.pagesAt + bounds[0];
  const bytes = reader.data.slice(start, bounds[1] - bounds[0]);
  const fault = pageFault(bytes, reader.keysOf(page), reader.table());
  if (fault) {
    const text = `page ${page}: ${fault.text}`;
    job.ruleLater('text', 'TEXT', start + fault.at, fault.length, fault.expected, fault.found, text);
  }
}

/** @param {Job} job @param {number} offset */
async function checkSymbols(job, offset) {
  const table = await job.source.read(offset, SYMBOLS_BYTES);
  const symbols = new Symbols(table);
  let isOver = false;
  for (let code = 0; code < 256; code++) {
    const length = symbols.lengths[code];
    const bad = firstNonZero(table, 256 + 8 * code + length, 256 + 8 * code + 8);
    const text = 'symbols have 8 bytes at most, with zeros behind them; the escape has none';
    if (table[code] !== length || bad >= 0) {
      const at = table[code] !== length ? code : bad;
      job.rule('text', 'TEXT', offset + at, 1, table[code] !== length ? length : 0, table[at], text);
      return;
    }
    if (length === 0) {
      isOver = true;
    } else if (isOver) {
      job.rule('text', 'TEXT', offset + code, 1, 0, length, 'the first codes must have the symbols');
      return;
    }
  }
}

/**
 * @param {number} at
 * @param {number} length
 * @param {unknown} expected
 * @param {unknown} found
 * @param {string} text
 */
const faultOf = (at, length, expected, found, text) => ({ at, length, expected, found, text });

/**
 * Returns the rule that a page breaks.
 * @param {Uint8Array} bytes
 * @param {number} keys
 * @param {Symbols} symbols
 */
function pageFault(bytes, keys, symbols) {
  if (bytes.length < HEAD_AT) {
    return faultOf(0, bytes.length, HEAD_AT, bytes.length, 'a page must have room for its fields');
  }
  const flags = bytes[4];
  if ((flags & ~(WIDE | PLAIN)) !== 0) {
    return faultOf(4, 1, 'known flags', flags, 'a page has no other flags');
  }
  const width = flags & WIDE ? 2 : 1;
  const headAt = width === 1 ? HEAD_AT : HEAD_AT_WIDE;
  const headEnd = headAt + (bytes[0] | (bytes[1] << 8));
  if (headEnd > bytes.length) {
    return faultOf(0, bytes.length, headEnd, bytes.length, 'a page must have room for its head');
  }
  const followers = Math.max(keys - 1, 0);
  const spare = [
    [PRINTS_AT + keys, SHARED_AT],
    [SHARED_AT + followers, FIRST_AT],
    [FIRST_AT + followers, LENGTHS_AT],
    [LENGTHS_AT + width * followers, headAt],
  ];
  for (const [from, to] of spare) {
    const bad = firstNonZero(bytes, from, to);
    if (bad >= 0) {
      return faultOf(bad, 1, 0, bytes[bad], 'fields of keys that a page does not have must be zero');
    }
  }
  const page = new TextPage(bytes, keys, symbols);
  const lengths = Array.from({ length: followers }, (_, at) => page.length(at + 1));
  if (width === 2 && lengths.every((length) => length <= 255)) {
    return faultOf(4, 1, 'lengths of one byte', flags, 'lengths have two bytes only where one needs them');
  }
  const ends = [headEnd];
  for (const length of lengths) {
    ends.push(ends[ends.length - 1] + Math.max(length - 1, 0));
  }
  if (ends[followers] !== bytes.length) {
    return faultOf(0, bytes.length, ends[followers], bytes.length, 'the head and all codes must fill a page');
  }
  return codeFault(bytes, ends, symbols) ?? keyFault(page, lengths, ends);
}

/**
 * Checks that all codes have symbols, and that a byte follows each escape.
 * @param {Uint8Array} bytes
 * @param {number[]} ends
 * @param {Symbols} symbols
 */
function codeFault(bytes, ends, symbols) {
  if (bytes[4] & PLAIN) {
    return null;
  }
  for (let follower = 0; follower + 1 < ends.length; follower++) {
    for (let at = ends[follower]; at < ends[follower + 1]; at++) {
      if (bytes[at] === ESCAPE) {
        at += 1;
        if (at === ends[follower + 1]) {
          return faultOf(at - 1, 1, 'a byte', 'the end of the codes', 'a byte must follow an escape');
        }
      } else if (symbols.lengths[bytes[at]] === 0) {
        return faultOf(at, 1, 'a code of a symbol', bytes[at], 'each code must have a symbol');
      }
    }
  }
  return null;
}

/**
 * Checks all fields against the keys.
 * @param {TextPage} page
 * @param {number[]} lengths
 * @param {number[]} ends
 */
function keyFault(page, lengths, ends) {
  const { bytes, head } = page;
  const keys = lengths.length + 1;
  const base = bytes[2] | (bytes[3] << 8);
  const expected = commonBytes(head, page.key(keys - 1));
  if (base !== expected) {
    return faultOf(2, 2, expected, base, 'the base must be what the head shares with the last key');
  }
  for (let slot = 0; slot < keys; slot++) {
    const key = page.key(slot);
    const fault = slot === 0 ? null : restFault(page, slot - 1, base, key, lengths, ends);
    if (fault) {
      return fault;
    }
    const print = printOf(key);
    if (bytes[PRINTS_AT + slot] !== print) {
      return faultOf(PRINTS_AT + slot, 1, print, bytes[PRINTS_AT + slot], 'a fingerprint must be that of its key');
    }
  }
  return null;
}

/**
 * Checks what a page says of a key after the head.
 * @param {TextPage} page
 * @param {number} follower
 * @param {number} base
 * @param {Uint8Array} key
 * @param {number[]} lengths
 * @param {number[]} ends
 */
function restFault(page, follower, base, key, lengths, ends) {
  const { bytes, head } = page;
  if (key.length > KEY_BYTES_MAX) {
    const length = ends[follower + 1] - ends[follower];
    return faultOf(ends[follower], length, KEY_BYTES_MAX, 'more', 'a key has 65,535 bytes at most');
  }
  const shared = bytes[SHARED_AT + follower];
  const all = commonBytes(head, key);
  if (all < base || Math.min(all - base, 255) !== shared) {
    const expected = all < base ? `${base} bytes or more` : Math.min(all - base, 255);
    return faultOf(SHARED_AT + follower, 1, expected, shared, 'a key must state what it shares with the head');
  }
  const first = key[base + shared];
  const has = first !== undefined;
  if (has !== lengths[follower] > 0 || (first ?? 0) !== bytes[FIRST_AT + follower]) {
    const text = 'a first byte must be that of the rest of its key';
    return faultOf(FIRST_AT + follower, 1, first ?? 'none', bytes[FIRST_AT + follower], text);
  }
  return null;
}
