/**
 * Checks of byte keys against the tuple lines: words, tails, columns, pages of TEXT, order.
 *
 * A unit, which is a tuple line or a page of 16 keys, is first looked at in a way that makes no objects. Keys are in
 * order if their words are; only equal words need more. A unit that is not plainly right is looked at again, key by
 * key, and its faults are reported.
 */
import { compareBytes } from '../mask.js';
import { isUtf8 } from '../meta.js';
import { KEY_BYTES_MAX } from '../text.js';
import { TEXT_PAGE_KEYS } from '../shape.js';
import { ColumnReader, badElement, knownMask, shown } from './columns.js';
import { isSame } from './numbers.js';
import { PageKeys } from './pages.js';
import { Stream, areEqual, firstNonZero } from './reader.js';
import { Spread } from './spread.js';
import { TextReader, checkPage, checkTextFrame } from './text.js';

/**
 * @typedef {import('./reader.js').Job} Job
 * @typedef {import('../header.js').Header} Header
 * @typedef {import('../mask.js').Mask} Mask
 */

/** The key that was looked at last: bytes that stay as they are, and its word. */
class Last {
  constructor() {
    /** @type {Uint8Array} */
    this.bytes = new Uint8Array(0);
    this.start = 0;
    this.end = -1;
    this.hasWord = false;
    this.word = new Uint32Array(4);
  }

  /** @param {Last} other */
  take(other) {
    this.set(other.bytes, other.start, other.end, other.hasWord ? other.word : null);
  }

  /** @param {Uint8Array} bytes @param {number} start @param {number} end @param {Uint32Array | null} word */
  set(bytes, start, end, word) {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
    this.hasWord = word !== null;
    for (let part = 0; word && part < 4; part++) {
      this.word[part] = word[part];
    }
  }

  /** The key; null if there is none. */
  key() {
    return this.end < 0 ? null : this.bytes.subarray(this.start, this.end);
  }
}

export class KeyCheck {
  /**
   * @param {Job} job
   * @param {Header} header
   * @param {Mask | null} mask null if it breaks a rule: then only pages of TEXT are looked at
   */
  constructor(job, header, mask) {
    this.job = job;
    this.header = header;
    this.mask = mask;
    this.isUnique = header.isUnique;
    this.lines = new Stream(job.pages);
    this.tails = header.tails ? new ColumnReader(job, 'TAIL', header.tails) : null;
    this.keys = header.keys ? new ColumnReader(job, 'KEYS', header.keys) : null;
    this.pages = header.text ? new TextReader(job, header) : null;
    this.spread = mask ? new Spread(mask) : null;
    this.isText = header.keyType.name === 'utf8';
    /** Keys of a unit. */
    this.size = keysOfUnit(header);
    /** The last key of the unit before, and the one of the unit at hand. */
    this.before = new Last();
    this.last = new Last();
    /** What keys are made in: the last key of the unit before stays, and the key before the one at hand. */
    this.rooms = [0, 1, 2].map(() => this.spread?.room() ?? new Uint8Array(0));
    this.decoded = [new PageKeys(), new PageKeys()];
    /** @type {Uint8Array} */
    this.covered = this.spread?.room() ?? new Uint8Array(0);
    this.word = new Uint32Array(4);
    this.ownWord = new Uint32Array(4);
  }

  /**
   * Looks at the key before a unit, for the order.
   * @param {number} unit
   */
  async begin(unit) {
    if (unit === 0 || !this.mask) {
      return;
    }
    await this.job.once(() => {
      this.end(this.slowKey(unit * this.size - 1, null));
      this.job.drop();
    });
  }

  /** Notes the last key of a unit. @param {Uint8Array | null} key */
  end(key) {
    this.before.set(key ?? new Uint8Array(0), 0, key ? key.length : -1, null);
  }

  /** Looks at a unit. @param {number} unit */
  unit(unit) {
    const { header, size } = this;
    const first = unit * size;
    const end = Math.min(first + size, header.tuples);
    // The outermost keys are also those of the superblock, and the last page may have less than 16 keys.
    if (first > 0 && end < header.tuples && this.isPlain(unit, first, end)) {
      this.before.take(this.last);
      return;
    }
    if (this.mask) {
      let key = this.before.key();
      for (let rank = first; rank < end; rank++) {
        key = this.slowKey(rank, key);
      }
      if (this.pages) {
        checkPage(this.job, this.pages, unit);
      }
      this.end(key);
    } else {
      checkPage(this.job, /** @type {TextReader} */ (this.pages), unit);
    }
  }

  /**
   * Reports whether all is plainly right. Nothing is changed but `last`: a page may be missing.
   * @param {number} unit
   * @param {number} first
   * @param {number} end
   */
  isPlain(unit, first, end) {
    const { header, pages, keys, mask } = this;
    const count = end - first;
    const page = pages ? this.plainPage(unit) : null;
    if (pages && !page) {
      return false;
    }
    if (!mask) {
      return true;
    }
    const { lineTuples, line } = header;
    const number = Math.floor(first / lineTuples);
    const lines = Math.floor((end - 1) / lineTuples) + 1 - number;
    const at = this.lines.at(line.offset + 64 * number, 64 * lines);
    if (this.tails) {
      // All of them are here now, and nothing can interrupt what follows.
      this.tails.data.at(this.tails.place(first * mask.tailBytes), count * mask.tailBytes);
    }
    if (keys && !this.areHere(keys, first, end)) {
      return false;
    }
    this.last.take(this.before);
    for (let rank = first; rank < end; rank++) {
      const own = Math.floor(rank / lineTuples);
      const word = at + 64 * (own - number) + (rank - own * lineTuples) * header.wordBytes;
      if (!this.isPlainKey(rank, word, page, rank - first)) {
        return false;
      }
    }
    return true;
  }

  /** Decodes a page of 16 keys; null if it is not plainly right. @param {number} unit */
  plainPage(unit) {
    const pages = /** @type {TextReader} */ (this.pages);
    const bounds = pages.bounds(unit);
    if (bounds[0] >= bounds[1] || !pages.isSound(bounds)) {
      return null;
    }
    const symbols = pages.table();
    const length = bounds[1] - bounds[0];
    const at = pages.data.at(pages.offset + pages.shape.pagesAt + bounds[0], length);
    // Not the room that has the last key.
    const page = this.decoded[this.decoded[0].bytes === this.before.bytes ? 1 : 0];
    return page.decode(pages.data.bytes, at, length, symbols) ? page : null;
  }

  /**
   * Makes some keys of the column readable. Returns false if their offsets are not sound.
   * @param {ColumnReader} keys
   * @param {number} first
   * @param {number} end
   */
  areHere(keys, first, end) {
    const { elementBytes, offsetBytes, dataBytes } = keys.shape;
    if (offsetBytes === 0) {
      keys.data.at(keys.place(first * elementBytes), (end - first) * elementBytes);
      return true;
    }
    let at = keys.offset + first * offsetBytes;
    keys.offsets.at(at, (end - first + 1) * offsetBytes);
    const start = keys.offsets.number(at, offsetBytes);
    let before = start;
    for (let rank = first; rank < end; rank++) {
      at += offsetBytes;
      const next = keys.offsets.number(at, offsetBytes);
      if (next < before || next - before > KEY_BYTES_MAX) {
        return false;
      }
      before = next;
    }
    if (before > dataBytes) {
      return false;
    }
    keys.data.at(keys.place(start), before - start);
    return true;
  }

  /**
   * Reports whether a key is plainly right, and notes it as the last one.
   * @param {number} rank
   * @param {number} at place of its word
   * @param {PageKeys | null} page
   * @param {number} slot
   */
  isPlainKey(rank, at, page, slot) {
    const { header, keys } = this;
    const mask = /** @type {Mask} */ (this.mask);
    const spread = /** @type {Spread} */ (this.spread);
    let bytes = this.covered;
    let [start, end] = [0, 0];
    let isAscii = false;
    if (mask.isLossless || this.tails) {
      bytes = this.room();
      end = spread.take(this.lines.view, at, header.wordBytes, bytes) ? this.lengthOf(rank, bytes) : -1;
      if (end < 0 || end > mask.keyBytesMax || !spread.isOver(bytes, end)) {
        return false;
      }
      isAscii = spread.isAscii;
    } else if (!spread.take(this.lines.view, at, header.wordBytes, bytes)) {
      return false;
    }
    if (keys) {
      const own = keys.shape.offsetBytes;
      const size = keys.shape.elementBytes;
      const from = own === 0 ? rank * size : keys.offsets.number(keys.offset + rank * own, own);
      const to = own === 0 ? from + size : keys.offsets.number(keys.offset + (rank + 1) * own, own);
      const place = keys.data.at(keys.place(from), to - from);
      const stored = keys.data.bytes;
      if (bytes === this.covered) {
        [bytes, start, end] = [stored, place, place + to - from];
      } else if (end !== to - from || !isSame(bytes, 0, stored, place, end)) {
        return false;
      }
    } else if (page) {
      [bytes, start, end] = [page.bytes, page.starts[slot], page.starts[slot + 1]];
      isAscii = page.any < 128;
      if (end - start > mask.keyBytesMax || (mask.isFixed && end - start < mask.keyBytesMax)) {
        return false;
      }
    }
    if (bytes !== this.covered && !mask.isLossless && !this.tails && !this.isCovered(bytes, start, end)) {
      return false;
    }
    // Keys of a page that share more with its head than these agree so far.
    const same = page && slot > 0 ? Math.min(page.prefixes[slot - 1], page.prefixes[slot]) : 0;
    if (!this.isInOrder(bytes, start, end, same) || (this.isText && !isAscii && !isText(bytes, start, end))) {
      return false;
    }
    this.last.set(bytes, start, end, spread.word);
    return true;
  }

  /** Memory that has no key of use. */
  room() {
    const { rooms, before, last } = this;
    let at = 0;
    while (rooms[at] === before.bytes || rooms[at] === last.bytes) {
      at += 1;
    }
    return rooms[at];
  }

  /** The length of a key that is made of its word or its tail. @param {number} rank @param {Uint8Array} key */
  lengthOf(rank, key) {
    const { tails } = this;
    const spread = /** @type {Spread} */ (this.spread);
    if (!tails) {
      return spread.length();
    }
    const size = tails.shape.elementBytes;
    const at = tails.data.at(tails.place(rank * size), size);
    return spread.takeTail(tails.data.bytes, at, key);
  }

  /**
   * Reports whether a key begins with the bytes that its word covers, or with what is left of them before zeros.
   * @param {Uint8Array} bytes
   * @param {number} start
   * @param {number} end
   */
  isCovered(bytes, start, end) {
    const { covered } = this;
    const count = /** @type {Mask} */ (this.mask).covered;
    for (let at = 0; at < count; at++) {
      if (covered[at] !== (start + at < end ? bytes[start + at] : 0)) {
        return false;
      }
    }
    return true;
  }

  /**
   * Compares a key with the one before it, by their words first.
   * @param {Uint8Array} bytes
   * @param {number} start
   * @param {number} end
   * @param {number} same bytes in which they agree
   */
  isInOrder(bytes, start, end, same) {
    const { last, isUnique } = this;
    if (last.end < 0) {
      return true;
    }
    if (last.hasWord) {
      const { word } = /** @type {Spread} */ (this.spread);
      let part = 3;
      while (part > 0 && word[part] === last.word[part]) {
        part -= 1;
      }
      if (word[part] !== last.word[part]) {
        return word[part] > last.word[part];
      }
    }
    const length = Math.min(end - start, last.end - last.start);
    for (let at = same; at < length; at++) {
      const [one, other] = [last.bytes[last.start + at], bytes[start + at]];
      if (one !== other) {
        return one < other;
      }
    }
    const [one, other] = [last.end - last.start, end - start];
    return one < other || (one === other && !isUnique);
  }

  /**
   * Looks at a key, and reports what is wrong with it. Returns it; null if its place is not valid.
   * @param {number} rank
   * @param {Uint8Array | null} previous
   */
  slowKey(rank, previous) {
    const { job, header, tails, keys, pages } = this;
    const mask = /** @type {Mask} */ (this.mask);
    const line = this.lines.at(header.line.offset + 64 * Math.floor(rank / header.lineTuples), 64);
    const at = line + (rank % header.lineTuples) * header.wordBytes;
    let stored = null;
    /** @type {[number, number]} */
    let bounds = [0, 0];
    if (keys) {
      bounds = keys.bounds(rank);
      if (!keys.isSound(bounds) || bounds[1] - bounds[0] > KEY_BYTES_MAX) {
        keys.badOffsets(job, rank);
        return null;
      }
      stored = keys.bytes(bounds);
    }
    const place = () => this.placeOf(rank, keys ? keys.place(bounds[0]) : -1);
    let key = stored;
    if (tails) {
      const own = tails.bounds(rank);
      const tail = tails.bytes(own);
      key = mask.keyOf(this.wordAt(at), tail);
      const expected = mask.tailOf(key);
      if (!areEqual(expected, tail)) {
        badElement(job, 'TAIL', tails.place(own[0]), tail, rank, shown(expected));
      }
    } else if (pages) {
      key = pages.key(rank);
      if (key === null) {
        // A place that is not valid is reported with the pages.
        return null;
      }
      if (key.length > mask.keyBytesMax || (mask.isFixed && key.length < mask.keyBytesMax)) {
        const expected = `a key of ${mask.isFixed ? '' : 'at most '}${mask.keyBytesMax} bytes`;
        badElement(job, ...place(), key, rank, expected);
      }
    } else if (mask.isLossless) {
      key = mask.keyOf(this.wordAt(at), null);
    }
    const whole = /** @type {Uint8Array} */ (key);
    if (keys && stored && !areEqual(stored, whole)) {
      badElement(job, 'KEYS', keys.place(bounds[0]), stored, rank, shown(whole));
    }
    this.checkKey(rank, whole, this.wordAt(at), place, previous);
    return whole;
  }

  /**
   * Section and offset of a key.
   * @param {number} rank
   * @param {number} inKeys
   * @returns {[string, number]}
   */
  placeOf(rank, inKeys) {
    if (this.pages) {
      return ['TEXT', this.pages.place(rank)];
    }
    const { line, lineTuples } = this.header;
    return inKeys >= 0 ? ['KEYS', inKeys] : ['LINE', line.offset + 64 * Math.floor(rank / lineTuples)];
  }

  /** The word at a place in the line, as four numbers. @param {number} at */
  wordAt(at) {
    const { wordBytes } = this.header;
    const { word } = this;
    word.fill(0);
    for (let part = 0; part < wordBytes / 4; part++) {
      word[part] = this.lines.view.getUint32(at + 4 * part, true);
    }
    return word;
  }

  /**
   * @param {number} rank
   * @param {Uint8Array} key
   * @param {Uint32Array} word
   * @param {() => [string, number]} place
   * @param {Uint8Array | null} previous
   */
  checkKey(rank, key, word, place, previous) {
    const { job, header } = this;
    const own = this.ownWord;
    const hasWord = /** @type {Mask} */ (this.mask).wordOf(key, own);
    if (!hasWord || own[0] !== word[0] || own[1] !== word[1] || own[2] !== word[2] || own[3] !== word[3]) {
      badElement(job, ...place(), key, rank, 'a key of this word');
    }
    const order = previous ? compareBytes(previous, key) : -1;
    if (order > 0 || (order === 0 && header.isUnique)) {
      badElement(job, ...place(), key, rank, 'a key in order');
    }
    if (this.isText && !isUtf8(key)) {
      badElement(job, ...place(), key, rank, 'valid UTF-8');
    }
    if (rank === 0) {
      this.checkEnd(key, 136, 128);
    }
    if (rank + 1 === header.tuples) {
      this.checkEnd(key, 200, 132);
    }
  }

  /** @param {Uint8Array} key @param {number} at @param {number} lengthAt */
  checkEnd(key, at, lengthAt) {
    const { head, view } = this.header;
    const named = head.subarray(at, at + 64);
    const start = key.subarray(0, 64);
    const isSame = areEqual(named.subarray(0, start.length), start) && firstNonZero(named, start.length, 64) < 0;
    if (!isSame || view.getUint32(lengthAt, true) !== key.length) {
      const text = 'the superblock must name the outermost keys';
      this.job.rule('min-max', 'superblock', at, 64, shown(key), shown(named), text);
    }
  }
}

/**
 * Reports whether a part of memory is UTF-8.
 * @param {Uint8Array} bytes
 * @param {number} start
 * @param {number} end
 */
function isText(bytes, start, end) {
  for (let at = start; at < end; at++) {
    if (bytes[at] > 127) {
      return isUtf8(bytes.subarray(start, end));
    }
  }
  return true;
}

/** Keys of a unit, by which the check of a file's byte keys is divided. @param {Header} header */
export const keysOfUnit = (header) => (header.text ? TEXT_PAGE_KEYS : header.lineTuples);

/**
 * Checks some units of byte keys, and the pages of TEXT with them.
 * @param {Job} job
 * @param {Header} header
 * @param {number} from
 * @param {number} to
 */
export async function checkKeys(job, header, from, to) {
  const mask = await knownMask(job, header);
  if (from === 0 && header.text) {
    await checkTextFrame(job, header);
    // What is wrong with TEXT comes behind what is wrong with keys.
    job.later.push(...job.rules.splice(0));
  }
  if (mask === undefined && !header.text) {
    return;
  }
  const check = new KeyCheck(job, header, mask ?? null);
  await check.begin(from);
  const weight = weightOf(header);
  await job.each(from, to, (unit) => check.unit(unit), { weight });
}

/** Bytes of a unit. @param {Header} header */
export function weightOf(header) {
  const { tails, keys, text, tuples, lines } = header;
  const all = [tails, keys, text].reduce((sum, it) => sum + (it?.shape.dataBytes ?? 0), 64 * lines);
  return tuples > 0 ? (all / tuples) * keysOfUnit(header) : 0;
}
