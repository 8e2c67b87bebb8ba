/**
 * Checks of the tuple lines and of the separators above them, in one pass in file order.
 *
 * Words of 4 and 8 bytes are pairs of numbers of 32 bits, high and low; those of 16 bytes are BigInts, but only at
 * borders. A line that is not plainly right is looked at again, word by word, and its faults are reported.
 */
import { numberOfBytes } from '../logical.js';
import { slotBytes } from '../shape.js';
import { wordAt } from '../search.js';
import { isKeyWord, MINUS_ZERO } from '../types.js';
import { GridCheck } from './grid.js';
import { Stream, firstNonZero } from './reader.js';
import { checkBlocks } from './sums.js';

/**
 * @typedef {import('./reader.js').Job} Job
 * @typedef {import('../header.js').Header} Header
 */

/** Lines of a block. */
const BLOCK_LINES = 128;

/** A level of the spine, and the line of it that was looked at last. */
class LevelCursor {
  /**
   * @param {Job} job
   * @param {Header} header
   * @param {import('../shape.js').Level} level
   */
  constructor(job, header, level) {
    this.job = job;
    this.level = level;
    this.wordBytes = header.wordBytes;
    this.start = (header.spine?.offset ?? 0) + level.offset;
    this.width = slotBytes(level.encoding, header.wordBytes);
    this.most = 2 ** (8 * this.width) - 1;
    this.stream = new Stream(job.pages, 2);
    this.line = -1;
    this.place = 0;
    this.baseHigh = 0;
    this.baseLow = 0;
    this.shift = 0;
    this.isExact = false;
    /** The base of a line of words of 16 bytes, and the distance of a word from it; lowest part first. */
    this.base = new Uint32Array(4);
    this.far = new Uint32Array(6);
  }

  /** @param {number} line */
  go(line) {
    // The stream may hold another page since, so the place is asked for each time.
    this.place = this.stream.at(this.start + 64 * line, 64);
    if (line === this.line) {
      return;
    }
    if (this.level.encoding !== 0) {
      const { view } = this.stream;
      const at = this.place + 62 - this.wordBytes;
      this.baseLow = view.getUint32(at, true);
      this.baseHigh = this.wordBytes === 8 ? view.getUint32(at + 4, true) : 0;
      for (let part = 0; this.wordBytes === 16 && part < 4; part++) {
        this.base[part] = view.getUint32(at + 4 * part, true);
      }
      this.shift = view.getUint8(this.place + 62);
      this.isExact = this.shift > 0 && (view.getUint8(this.place + 63) & 1) === 0;
    }
    this.line = line;
  }

  /**
   * Reports whether a slot parts two words of 4 or 8 bytes.
   * @param {number} slot
   * @param {number} lastHigh
   * @param {number} lastLow
   * @param {number} firstHigh
   * @param {number} firstLow
   */
  parts(slot, lastHigh, lastLow, firstHigh, firstLow) {
    const { view } = this.stream;
    const at = this.place + slot * this.width;
    if (this.level.encoding === 0) {
      const low = view.getUint32(at, true);
      const high = this.wordBytes === 8 ? view.getUint32(at + 4, true) : 0;
      const isLast = high === lastHigh && low === lastLow;
      const isAbove = high > lastHigh || (high === lastHigh && low > lastLow);
      return isLast || (isAbove && (high < firstHigh || (high === firstHigh && low < firstLow)));
    }
    const code =
      this.width === 1 ? view.getUint8(at) : this.width === 2 ? view.getUint16(at, true) : view.getUint32(at, true);
    if (code >= this.most || this.cell(lastHigh, lastLow) !== code) {
      return false;
    }
    return !(this.isExact && this.cell(firstHigh, firstLow) === code);
  }

  /**
   * The cell of a word; -1 if it is below the base. A cell beyond 2^53 is near to what it is.
   * @param {number} high
   * @param {number} low
   */
  cell(high, low) {
    let cellLow = low - this.baseLow;
    let cellHigh = high - this.baseHigh;
    if (cellLow < 0) {
      cellLow += 2 ** 32;
      cellHigh -= 1;
    }
    if (cellHigh < 0) {
      return -1;
    }
    const { shift } = this;
    if (shift >= 8 * this.wordBytes) {
      return 0;
    }
    if (shift >= 32) {
      return cellHigh >>> (shift - 32);
    }
    if (shift === 0) {
      return cellHigh * 2 ** 32 + cellLow;
    }
    return (cellHigh >>> shift) * 2 ** 32 + (((cellLow >>> shift) | (cellHigh << (32 - shift))) >>> 0);
  }

  /**
   * Reports whether a slot with a code plainly parts two words, which are given by their four numbers.
   * @param {number} slot
   * @param {Uint32Array} last
   * @param {Uint32Array} u
   * @param {number} first its place there
   */
  partsWide(slot, last, u, first) {
    const { view } = this.stream;
    const at = this.place + slot * this.width;
    if (this.level.encoding === 0) {
      return false;
    }
    const code =
      this.width === 1 ? view.getUint8(at) : this.width === 2 ? view.getUint16(at, true) : view.getUint32(at, true);
    if (code >= this.most || this.wideCell(last, 0) !== code) {
      return false;
    }
    return !(this.isExact && this.wideCell(u, first) === code);
  }

  /**
   * The cell of a word; -1 if it is below the base or no code has it.
   * @param {Uint32Array} u
   * @param {number} at
   */
  wideCell(u, at) {
    const { base, far, shift } = this;
    let borrow = 0;
    for (let part = 0; part < 4; part++) {
      const rest = u[at + part] - base[part] - borrow;
      far[part] = rest;
      borrow = rest < 0 ? 1 : 0;
    }
    if (borrow > 0) {
      return -1;
    }
    if (shift >= 128) {
      return 0;
    }
    const [part, bits] = [shift >>> 5, shift & 31];
    let above = far[part + 1] >>> bits;
    for (let higher = part + 2; higher < 4; higher++) {
      above |= far[higher];
    }
    return above === 0 ? ((far[part] >>> bits) | ((far[part + 1] << 1) << (31 - bits))) >>> 0 : -1;
  }
}

export class LineCheck {
  /**
   * @param {Job} job
   * @param {Header} header
   * @param {import('./grid.js').GridCheck | null} grid
   */
  constructor(job, header, grid) {
    this.job = job;
    this.header = header;
    this.grid = grid;
    this.isStrict = header.isUnique && !header.keyType.isBytes;
    this.words = header.wordBytes / 4;
    const levels = header.spine?.shape.levels ?? [];
    this.levels = levels.map((level) => new LevelCursor(job, header, level));
    this.childLines = header.spine?.shape.childLines ?? Infinity;
    // Place of the separator that `goToBorder` found.
    this.borderLine = 0;
    this.borderSlot = 0;
    /** The last word of the line before, the lowest part first. */
    this.before = new Uint32Array(4);
    this.next = 0;
    this.minusZero = this.wordOfMinusZero();
  }

  /**
   * Begins at a line that is not the first one: reads the last words before it.
   * @param {number} first
   */
  async begin(first) {
    const { header, grid, before } = this;
    this.next = first;
    const stream = new Stream(this.job.pages, 1);
    /** @param {number} line */
    const read = (line) => {
      const end = header.lineTuples * header.wordBytes;
      const at = stream.at(header.line.offset + 64 * line, 64) + end - header.wordBytes;
      for (let part = 0; part < this.words; part++) {
        before[part] = stream.view.getUint32(at + 4 * part, true);
      }
    };
    await this.job.once(() => {
      // The last border is the one before the last line.
      const border = Math.min(first - 1, header.lines - 2);
      if (grid && border >= 0) {
        read(border);
        grid.begin(border, before[1], before[0]);
      }
      read(Math.min(first, header.lines) - 1);
    });
  }

  /** The word of -0.0, which no key has; null if no word could be it. */
  wordOfMinusZero() {
    const { keyType, short } = this.header;
    if (keyType.name !== 'f64') {
      return null;
    }
    const place = short ? short.place(MINUS_ZERO) : { word: MINUS_ZERO, isKey: true };
    return place.isKey ? place.word : null;
  }

  /**
   * Checks the lines of a piece.
   * @param {number} at byte of the section
   * @param {Uint8Array} bytes
   */
  async piece(at, bytes) {
    const first = at / 64;
    const end = Math.min(first + Math.floor(bytes.length / 64), this.header.lines);
    const words = new Uint32Array(bytes.buffer, bytes.byteOffset, Math.floor(bytes.length / 4));
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const run =
      this.words === 4
        ? () => this.wideRun(first, end, words, view, bytes)
        : () => this.run(first, end, words, view, bytes);
    while (this.next < end) {
      await this.job.once(run);
    }
  }

  /**
   * Checks lines of words of 4 and 8 bytes from `next` on.
   * @param {number} first
   * @param {number} end
   * @param {Uint32Array} u
   * @param {DataView} view
   * @param {Uint8Array} bytes
   */
  run(first, end, u, view, bytes) {
    const { header, grid, childLines, isStrict, words } = this;
    const { lineTuples, lines } = header;
    const isWide = words === 2;
    const gap = lineTuples * words;
    const values = header.valuesAt / 4;
    const zeroLow = this.minusZero === null ? 0 : Number(this.minusZero & 0xffffffffn);
    const zeroHigh = this.minusZero === null ? -1 : Number(this.minusZero >> 32n);
    while (this.next < end) {
      const number = this.next;
      const at = (number - first) * 16;
      let [low, high] = [this.before[0], this.before[1]];
      const firstLow = u[at];
      const firstHigh = isWide ? u[at + 1] : 0;
      if (number > 0 && number % childLines === 0) {
        this.border(number - 1, high, low, firstHigh, firstLow);
      }
      let isPlain = number > 0 && number + 1 < lines;
      if (isPlain) {
        for (let slot = at; slot < at + gap; slot += words) {
          const ownLow = u[slot];
          const ownHigh = isWide ? u[slot + 1] : 0;
          if (ownHigh < high || (ownHigh === high && (ownLow < low || (isStrict && ownLow === low)))) {
            isPlain = false;
          }
          if (ownHigh === zeroHigh && ownLow === zeroLow) {
            isPlain = false;
          }
          low = ownLow;
          high = ownHigh;
        }
        for (let spare = at + gap; spare < at + values; spare++) {
          if (u[spare] !== 0) {
            isPlain = false;
          }
        }
      } else {
        low = u[at + gap - words];
        high = isWide ? u[at + gap - 1] : 0;
      }
      if (grid && number + 1 < lines) {
        grid.border(number, high, low);
      }
      if (!isPlain) {
        this.slowLine(number, view, bytes, 4 * at);
      }
      this.before[0] = low;
      this.before[1] = high;
      this.next = number + 1;
      this.job.keep();
    }
  }

  /**
   * Checks lines of words of 16 bytes from `next` on.
   * @param {number} first
   * @param {number} end
   * @param {Uint32Array} u
   * @param {DataView} view
   * @param {Uint8Array} bytes
   */
  wideRun(first, end, u, view, bytes) {
    const { header, childLines, isStrict, before } = this;
    const { lineTuples, lines } = header;
    while (this.next < end) {
      const number = this.next;
      const at = (number - first) * 16;
      if (number > 0 && number % childLines === 0) {
        const cursor = this.goToBorder(number - 1);
        if (cursor && !cursor.partsWide(this.borderSlot, before, u, at)) {
          const last = before.reduceRight((word, part) => (word << 32n) | BigInt(part), 0n);
          this.separator(cursor, this.borderLine, this.borderSlot, last, wordAt(view, 4 * at, 16));
        }
      }
      let isPlain = number > 0 && number + 1 < lines;
      /** @type {Uint32Array} */
      let left = before;
      let leftAt = 0;
      for (let slot = 0; slot < lineTuples; slot++) {
        const own = at + 4 * slot;
        let part = 3;
        while (part > 0 && u[own + part] === left[leftAt + part]) {
          part -= 1;
        }
        const [one, other] = [u[own + part], left[leftAt + part]];
        if (one < other || (isStrict && one === other)) {
          isPlain = false;
        }
        left = u;
        leftAt = own;
      }
      if (isPlain && firstNonZero(bytes, 4 * at + 16 * lineTuples, 4 * at + header.valuesAt) >= 0) {
        isPlain = false;
      }
      if (!isPlain) {
        this.slowLine(number, view, bytes, 4 * at);
      }
      for (let part = 0; part < 4; part++) {
        before[part] = u[leftAt + part];
      }
      this.next = number + 1;
      this.job.keep();
    }
  }

  /**
   * Finds the separator of the border behind a line, and checks it.
   * @param {number} number
   * @param {number} lastHigh
   * @param {number} lastLow
   * @param {number} firstHigh
   * @param {number} firstLow
   */
  border(number, lastHigh, lastLow, firstHigh, firstLow) {
    const cursor = this.goToBorder(number);
    if (cursor && !cursor.parts(this.borderSlot, lastHigh, lastLow, firstHigh, firstLow)) {
      const [last, first] = [
        [lastHigh, lastLow],
        [firstHigh, firstLow],
      ].map(([high, low]) => (BigInt(high) << 32n) | BigInt(low));
      this.separator(cursor, this.borderLine, this.borderSlot, last, first);
    }
  }

  /**
   * Goes to the separator of the border behind a line, and keeps its place: an object for each line would be slow.
   * @param {number} number
   * @returns {LevelCursor | undefined}
   */
  goToBorder(number) {
    let child = Math.floor(number / this.childLines);
    for (const cursor of this.levels) {
      const { fanout } = cursor.level;
      const line = Math.floor(child / fanout);
      const slot = child - line * fanout;
      if (slot + 1 < fanout) {
        cursor.go(line);
        this.borderLine = line;
        this.borderSlot = slot;
        return cursor;
      }
      child = line;
    }
    return undefined;
  }

  /**
   * Checks a separator, and reports what is wrong with it.
   * @param {LevelCursor} cursor
   * @param {number} line
   * @param {number} slot
   * @param {bigint} last
   * @param {bigint} first
   */
  separator(cursor, line, slot, last, first) {
    const { wordBytes } = this.header;
    const { width } = cursor;
    const { view } = cursor.stream;
    const at = cursor.start + 64 * line + slot * width;
    const code = wordAt(view, cursor.place + slot * width, width);
    /** @param {string} expected @param {string} text */
    const wrong = (expected, text) => this.job.rule('separator', 'SPIN', at, width, expected, code, text);
    if (cursor.level.encoding === 0) {
      if (code < last || (code >= first && code !== last)) {
        wrong(`${last} up to below ${first}`, 'a separator must separate its neighbours');
      }
      return;
    }
    const base = wordAt(view, cursor.place + 62 - wordBytes, wordBytes);
    const shift = view.getUint8(cursor.place + 62);
    const isInexact = (view.getUint8(cursor.place + 63) & 1) !== 0;
    const isWithin = shift < 8 * wordBytes;
    /** @param {bigint} word */
    const cell = (word) => (word < base ? null : isWithin ? (word - base) >> BigInt(shift) : 0n);
    const most = (1n << BigInt(8 * width)) - 1n;
    if (cell(last) !== code || code >= most) {
      wrong(String(cell(last) ?? 'a base at most the key'), 'a code must be the cell of the last key');
    } else if (shift > 0 && cell(first) === code && !isInexact) {
      wrong('a cell border', 'an inexact border must be flagged');
    }
  }

  /**
   * Looks at a line word by word.
   * @param {number} number
   * @param {DataView} view
   * @param {Uint8Array} bytes
   * @param {number} at its place in these
   */
  slowLine(number, view, bytes, at) {
    const { header, job } = this;
    const { wordBytes, lineTuples, tuples, keyType, short } = header;
    const used = Math.min(tuples - number * lineTuples, lineTuples);
    const offset = header.line.offset + 64 * number;
    let before = number === 0 ? null : this.before.reduceRight((word, part) => (word << 32n) | BigInt(part), 0n);
    for (let slot = 0; slot < used; slot++) {
      const word = wordAt(view, at + slot * wordBytes, wordBytes);
      const place = offset + slot * wordBytes;
      if (before !== null && word < before) {
        job.rule('order', 'LINE', place, wordBytes, `at least ${before}`, word, 'keys must ascend');
      } else if (word === before && this.isStrict) {
        job.rule('duplicate', 'LINE', place, wordBytes, 'another key', word, 'keys must be unique');
      }
      before = word;
    }
    for (let slot = 0; slot < used; slot++) {
      const word = wordAt(view, at + slot * wordBytes, wordBytes);
      if (!isKeyWord(keyType, short ? short.key(word) : word)) {
        const [place, found] = [offset + slot * wordBytes, `the word ${word.toString(16)}`];
        job.rule('key', 'LINE', place, 8, 'a number, zero without a sign', found, 'keys must be numbers');
        break;
      }
    }
    const keysEnd = lineTuples * wordBytes;
    const areOnes = bytes.subarray(at + used * wordBytes, at + keysEnd).every((byte) => byte === 255);
    const hasGap = firstNonZero(bytes, at + keysEnd, at + header.valuesAt) < 0;
    const areZeros = firstNonZero(bytes, at + header.valuesAt + used * header.valueBytes, at + 64) < 0;
    if (!areOnes || !hasGap || !areZeros) {
      const text = 'free keys must be all ones, free values and gaps zero';
      job.rule('line-padding', 'LINE', offset, 64, 'padding', 'other bytes', text);
    }
    if (number === 0) {
      this.checkEnd(wordAt(view, at, wordBytes), 136, 128);
    }
    if (number + 1 === header.lines) {
      const word = wordAt(view, at + (used - 1) * wordBytes, wordBytes);
      this.checkEnd(word, 200, 132);
      if (short && !short.holds(word)) {
        const place = offset + (used - 1) * wordBytes;
        const expected = 'a word of the runs, whose key is one of the type';
        job.rule('key', 'LINE', place, wordBytes, expected, word, 'words must be those of keys');
      }
    }
  }

  /**
   * Checks the smallest or the largest key in the superblock.
   * @param {bigint} word
   * @param {number} at
   * @param {number} lengthAt
   */
  checkEnd(word, at, lengthAt) {
    const { keyType, head, view, short } = this.header;
    if (keyType.isBytes) {
      return;
    }
    const key = short ? short.key(word) : word;
    const found = numberOfBytes(head.subarray(at, at + keyType.bytes));
    const isPadded = firstNonZero(head, at + keyType.bytes, at + 64) < 0;
    if (found !== key || view.getUint32(lengthAt, true) !== keyType.bytes || !isPadded) {
      this.job.rule('min-max', 'superblock', at, 64, key, found, 'the superblock must name the outermost keys');
    }
  }
}

/**
 * Checks some blocks of tuple lines: their sums, and all rules. Returns what the grid has to count.
 * @param {Job} job
 * @param {Header} header
 * @param {number} from
 * @param {number} to
 */
export async function checkLines(job, header, from, to) {
  const grid = header.grid ? new GridCheck(job, header) : null;
  const lines = new LineCheck(job, header, grid);
  if (from === 0) {
    await grid?.checkPadding();
  } else if (header.lines > 0) {
    await lines.begin(from * BLOCK_LINES);
  }
  await checkBlocks(job, header, header.line, from, to, (at, bytes) => lines.piece(at, bytes));
  if (to >= header.line.sums) {
    await grid?.end();
  }
  return grid?.counts() ?? null;
}

/**
 * Checks padding, shifts and flags of every spine line, and the number of flagged ones.
 * @param {Job} job
 * @param {Header} header
 */
export async function checkSpineLines(job, header) {
  const { spine, wordBytes } = header;
  if (!spine) {
    return;
  }
  const stream = new Stream(job.pages);
  let flagged = 0n;
  for (const level of spine.shape.levels) {
    const start = spine.offset + level.offset;
    await job.each(
      0,
      level.lines,
      (number) => {
        const at = stream.at(start + 64 * number, 64);
        const fault = spineFault(stream, at, level, number, wordBytes);
        if (fault) {
          job.rule('spine-line', 'SPIN', start + 64 * number, 64, fault, 'other bytes', 'a spine line must be padded');
        }
        flagged += level.encoding !== 0 && (stream.view.getUint8(at + 63) & 1) !== 0 ? 1n : 0n;
      },
      { weight: 64 },
    );
    if (level.lines % 2 === 1) {
      await job.zeros('SPIN', start + 64 * level.lines, start + 64 * (level.lines + 1));
    }
  }
  if (flagged !== spine.shape.inexactLines) {
    const at = 4096 + 128 * (header.find('SPIN')?.index ?? 0) + 56 + 16;
    job.rule('spine-line', 'SPIN', at, 8, flagged, spine.shape.inexactLines, 'the table must count flagged lines');
  }
}

/**
 * @param {Stream} stream
 * @param {number} at
 * @param {import('../shape.js').Level} level
 * @param {number} number
 * @param {number} wordBytes
 */
function spineFault(stream, at, level, number, wordBytes) {
  const { bytes } = stream;
  const width = slotBytes(level.encoding, wordBytes);
  const slots = level.fanout - 1;
  const children = Math.min(level.children - number * level.fanout, level.fanout);
  for (let byte = at + (children - 1) * width; byte < at + slots * width; byte++) {
    if (bytes[byte] !== 255) {
      return 'free slots of all ones';
    }
  }
  if (level.encoding === 0) {
    return null;
  }
  if (firstNonZero(bytes, at + slots * width, at + 62 - wordBytes) >= 0) {
    return 'zero between codes and base';
  }
  if (bytes[at + 62] >= 8 * wordBytes) {
    return 'a shift below the bits of a key';
  }
  return (bytes[at + 63] & ~1) !== 0 ? 'known flags' : null;
}
