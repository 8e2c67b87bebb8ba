/**
 * Checks of the mask, of byte keys and of the columns: tuple by tuple against the tuple lines.
 */
import { Refusal } from '../error.js';
import { hexText } from '../logical.js';
import { Mask, compareBytes } from '../mask.js';
import { isUtf8 } from '../meta.js';
import { checkMask } from '../pleach.js';
import { recordFault } from '../record.js';
import { wordAt } from '../search.js';
import { decodeFloat } from '../types.js';
import { Stream, areEqual, firstNonZero } from './reader.js';
import { TextReader } from './text.js';

/**
 * @typedef {import('./reader.js').Job} Job
 * @typedef {import('../header.js').Header} Header
 * @typedef {import('../header.js').Placed<import('../shape.js').ColumnShape>} Column
 */

/** Values up to this length are looked at in memory. */
const VALUE_BYTES_MAX = 4 << 20;
const KEY_BYTES_MAX = 65535;

/** First bytes of an element, for people. @param {Uint8Array} bytes */
const shown = (bytes) => hexText(bytes.subarray(0, 64));

/** A column that is read mostly in order. */
export class ColumnReader {
  /**
   * @param {Job} job
   * @param {string} tag
   * @param {Column} column
   */
  constructor(job, tag, column) {
    this.tag = tag;
    this.offset = column.offset;
    this.shape = column.shape;
    this.offsets = new Stream(job.pages);
    this.data = new Stream(job.pages);
  }

  /**
   * Start and end of an element in the data, as they are stored.
   * @param {number} rank
   * @returns {[number, number]}
   */
  bounds(rank) {
    const { elementBytes, offsetBytes } = this.shape;
    if (offsetBytes === 0) {
      return [rank * elementBytes, (rank + 1) * elementBytes];
    }
    const at = this.offset + rank * offsetBytes;
    return [this.offsets.number(at, offsetBytes), this.offsets.number(at + offsetBytes, offsetBytes)];
  }

  /**
   * Reports whether bounds are those of an element.
   * @param {[number, number]} bounds
   */
  isSound([start, end]) {
    return start <= end && end <= this.shape.dataBytes;
  }

  /** Where bytes of the data are in the file. @param {number} at */
  place(at) {
    return this.offset + this.shape.dataAt + at;
  }

  /** @param {[number, number]} bounds */
  bytes([start, end]) {
    return this.data.slice(this.place(start), end - start);
  }
}

export class ColumnCheck {
  /**
   * @param {Job} job
   * @param {Header} header
   * @param {import('../record.js').Record | null} record
   */
  constructor(job, header, record) {
    this.job = job;
    this.header = header;
    this.record = record;
    /** @type {Mask | null} */
    this.mask = null;
    this.lines = new Stream(job.pages);
    /** @type {Uint8Array | null} */
    this.previous = null;
    /** @type {{rank: number, start: number, end: number}[]} texts that are too long for memory */
    this.long = [];
    this.word = new Uint32Array(4);
    this.ownWord = new Uint32Array(4);
    this.native = new Uint8Array(header.keyType.bytes);
  }

  async run() {
    const { job, header } = this;
    const { tails, keys, values, codes, text } = header;
    const section = header.find('MASK');
    if (section) {
      const bytes = await job.source.read(section.offset, section.length);
      this.mask = this.readMask(section, bytes);
      if (!this.mask) {
        return;
      }
    }
    for (const [tag, column] of Object.entries({ TAIL: tails, KEYS: keys, VALS: values, CODE: codes })) {
      if (column) {
        await this.checkEdges(tag, column);
      }
    }
    if (values && header.valueType.isBytes) {
      await this.checkValues(values);
    }
    if (codes && values) {
      await this.checkCodes(codes, values.shape.elements);
    }
    const hasNumbers = values !== null && !header.valueType.isBytes;
    if (this.mask || keys || hasNumbers) {
      await this.checkTuples(tails, keys, hasNumbers ? values : null, text);
    }
  }

  /**
   * @param {import('../header.js').Section} section
   * @param {Uint8Array} bytes
   */
  readMask(section, bytes) {
    const { job, header } = this;
    /** @param {unknown} expected @param {unknown} found */
    const wrong = (expected, found) => {
      job.rule('mask', 'MASK', section.offset, section.length, expected, found, 'the mask must be that of the keys');
      return null;
    };
    let mask;
    try {
      mask = new Mask(bytes, header.wordBytes);
      checkMask(header, mask);
    } catch (error) {
      if (!(error instanceof Refusal)) {
        throw error;
      }
      return wrong('a mask that goes with the other sections', error.message);
    }
    const needsKeys = !mask.isLossless && mask.tailBytes === 0;
    if (!needsKeys && header.text) {
      return wrong('words that are not whole keys beside a TEXT section', 'words that are');
    }
    const keys = header.find('KEYS');
    if (keys && keys.flags !== (needsKeys ? 1 : 0)) {
      const text = 'KEYS is required where answers depend on it, and only there';
      job.rule('header', 'KEYS', 4096 + 128 * keys.index + 4, 4, needsKeys ? 1 : 0, keys.flags, text);
    }
    if (section.elements !== mask.covered) {
      return wrong(`${mask.covered} covered bytes`, `${section.elements} in the table`);
    }
    return mask.hasKeptReference ? wrong('zeros for kept bits of the reference', 'other bits') : mask;
  }

  /**
   * Checks guard bytes, padding, and the first and the last offset.
   * @param {string} tag
   * @param {Column} column
   */
  async checkEdges(tag, column) {
    const { job } = this;
    const { elements, offsetBytes, dataAt, dataBytes } = column.shape;
    const data = column.offset + dataAt;
    await job.zeros(tag, data + dataBytes, data + dataBytes + 64);
    if (offsetBytes === 0) {
      return;
    }
    const end = (elements + 1) * offsetBytes;
    const reader = new ColumnReader(job, tag, column);
    await job.once(() => {
      const first = reader.offsets.number(column.offset, offsetBytes);
      const last = reader.offsets.number(column.offset + elements * offsetBytes, offsetBytes);
      if (first !== 0 || last !== dataBytes) {
        const [expected, found] = [`0 up to ${dataBytes}`, `${first} up to ${last}`];
        job.rule('column', tag, column.offset, end, expected, found, 'offsets must cover the data');
      }
    });
    await job.zeros(tag, column.offset + end, data);
  }

  /**
   * Checks values that are byte strings: their offsets must ascend, and each must obey the rule of the type.
   * @param {Column} column
   */
  async checkValues(column) {
    const { job, header } = this;
    const reader = new ColumnReader(job, 'VALS', column);
    const isText = header.valueType.name === 'utf8';
    const record = this.record?.hasTexts ? this.record : null;
    if (column.shape.offsetBytes === 0) {
      return;
    }
    await job.each(
      0,
      column.shape.elements,
      (rank) => {
        const bounds = reader.bounds(rank);
        if (!reader.isSound(bounds)) {
          this.badOffsets(reader, rank);
        } else if (bounds[1] - bounds[0] > VALUE_BYTES_MAX) {
          this.long.push({ rank, start: bounds[0], end: bounds[1] });
        } else if (isText || record) {
          const value = reader.bytes(bounds);
          const fault = record ? recordFault(record, value) : isUtf8(value) ? null : 'valid UTF-8';
          if (fault) {
            this.badElement('VALS', reader.place(bounds[0]), value, rank, fault);
          }
        }
      },
      { bytes: column.shape.dataBytes },
    );
    for (const { rank, start, end } of this.long) {
      if (isText && !(await this.isLongText(reader.place(start), end - start))) {
        this.badElement('VALS', reader.place(start), new Uint8Array(0), rank, 'valid UTF-8');
      }
      if (record) {
        const value = await job.source.read(reader.place(start), end - start);
        const fault = recordFault(record, value);
        if (fault) {
          this.badElement('VALS', reader.place(start), value, rank, fault);
        }
      }
    }
  }

  /** @param {number} offset @param {number} length */
  async isLongText(offset, length) {
    const decoder = new TextDecoder('utf-8', { fatal: true });
    let isText = true;
    await this.job.pieces(offset, length, 1 << 20, (at, bytes) => {
      try {
        decoder.decode(bytes, { stream: at + bytes.length < length });
      } catch {
        isText = false;
      }
    });
    return isText;
  }

  /** @param {ColumnReader} reader @param {number} rank */
  badOffsets(reader, rank) {
    const { offsetBytes } = reader.shape;
    const at = reader.offset + rank * offsetBytes;
    this.job.rule('column', reader.tag, at, 2 * offsetBytes, 'ascending offsets', 'others', 'offsets must ascend');
  }

  /**
   * @param {string} tag
   * @param {number} at
   * @param {Uint8Array} found
   * @param {number} rank
   * @param {string} expected
   */
  badElement(tag, at, found, rank, expected) {
    const text = `the element of rank ${rank} must be that of its tuple`;
    this.job.rule('column', tag, at, found.length, expected, shown(found), text);
  }

  /**
   * Checks that every code is that of a value.
   * @param {Column} column
   * @param {number} values
   */
  async checkCodes(column, values) {
    const { job } = this;
    const stream = new Stream(job.pages);
    const width = column.shape.elementBytes;
    await job.each(
      0,
      column.shape.elements,
      (rank) => {
        const at = column.offset + rank * width;
        const code = stream.number(at, width);
        if (code >= values) {
          const text = `the code of rank ${rank} must be that of a value`;
          job.rule('column', 'CODE', at, width, `below ${values}`, code, text);
        }
      },
      { bytes: column.shape.dataBytes },
    );
  }

  /**
   * @param {Column | null} tails
   * @param {Column | null} keys
   * @param {Column | null} values
   * @param {import('../header.js').Placed<import('../shape.js').TextShape> | null} text
   */
  async checkTuples(tails, keys, values, text) {
    const { job, header } = this;
    const tailReader = tails ? new ColumnReader(job, 'TAIL', tails) : null;
    const keyReader = keys ? new ColumnReader(job, 'KEYS', keys) : null;
    const valueReader = values ? new ColumnReader(job, 'VALS', values) : null;
    const pages = text ? new TextReader(job, header) : null;
    const sections = [tails, keys, values, text].map((it) => it?.shape.dataBytes ?? 0);
    const bytes = sections.reduce((all, one) => all + one, 64 * header.lines);
    await job.each(
      0,
      header.tuples,
      (rank) => {
        const line = this.lines.at(header.line.offset + 64 * Math.floor(rank / header.lineTuples), 64);
        const slot = rank % header.lineTuples;
        if (valueReader) {
          this.checkValue(valueReader, rank, line, slot);
        }
        if (this.mask) {
          this.checkByteKey(this.mask, rank, line + slot * header.wordBytes, tailReader, keyReader, pages);
        } else if (keyReader) {
          this.checkNumber(keyReader, rank, line + slot * header.wordBytes);
        }
      },
      { bytes },
    );
  }

  /** @param {ColumnReader} reader @param {number} rank @param {number} line @param {number} slot */
  checkValue(reader, rank, line, slot) {
    const { valuesAt, valueBytes } = this.header;
    const at = line + valuesAt + slot * valueBytes;
    const held = this.lines.bytes.subarray(at, at + valueBytes);
    const bounds = reader.bounds(rank);
    const found = reader.bytes(bounds);
    if (!areEqual(held, found)) {
      this.badElement('VALS', reader.place(bounds[0]), found, rank, shown(held));
    }
  }

  /**
   * Checks a number in the key column, which has it as the type does, but one of 16 bytes most significant byte first.
   * @param {ColumnReader} reader
   * @param {number} rank
   * @param {number} at
   */
  checkNumber(reader, rank, at) {
    const expected = this.header.short ? this.nativeOfShort(at) : this.nativeOf(at);
    const bounds = reader.bounds(rank);
    const found = reader.bytes(bounds);
    if (!areEqual(expected, found)) {
      this.badElement('KEYS', reader.place(bounds[0]), found, rank, shown(expected));
    }
  }

  /**
   * The bytes of the number whose encoding is at a place in the line.
   * @param {number} at
   */
  nativeOf(at) {
    const { keyType } = this.header;
    const { native } = this;
    const top = keyType.bytes - 1;
    for (let byte = 0; byte <= top; byte++) {
      native[keyType.bytes === 16 ? top - byte : byte] = this.lines.bytes[at + byte];
    }
    if (keyType.name === 'f64' && native[top] < 128) {
      for (let byte = 0; byte <= top; byte++) {
        native[byte] ^= 255;
      }
    } else if (keyType.name === 'f64' || keyType.name.startsWith('i')) {
      native[top] ^= 128;
    }
    return native;
  }

  /**
   * The same of a short word.
   * @param {number} at
   */
  nativeOfShort(at) {
    const { keyType, short, wordBytes } = this.header;
    const key = /** @type {import('../short.js').Short} */ (short).key(wordAt(this.lines.view, at, wordBytes));
    let number = key;
    if (keyType.name === 'f64') {
      number = decodeFloat(key);
    } else if (keyType.name.startsWith('i')) {
      number = key ^ (1n << BigInt(8 * keyType.bytes - 1));
    }
    const { native } = this;
    for (let byte = 0; byte < keyType.bytes; byte++) {
      native[keyType.bytes === 16 ? 15 - byte : byte] = Number((number >> BigInt(8 * byte)) & 255n);
    }
    return native;
  }

  /**
   * Checks a byte key: its word, its tail or column, its order.
   * @param {Mask} mask
   * @param {number} rank
   * @param {number} at
   * @param {ColumnReader | null} tails
   * @param {ColumnReader | null} keys
   * @param {TextReader | null} pages
   */
  checkByteKey(mask, rank, at, tails, keys, pages) {
    let stored = null;
    /** @type {[number, number]} */
    let bounds = [0, 0];
    if (keys) {
      bounds = keys.bounds(rank);
      if (!keys.isSound(bounds) || bounds[1] - bounds[0] > KEY_BYTES_MAX) {
        this.badOffsets(keys, rank);
        this.previous = null;
        return;
      }
      stored = keys.bytes(bounds);
    }
    const place = () => this.placeOf(rank, keys ? keys.place(bounds[0]) : -1, pages);
    let key = stored;
    if (tails) {
      const own = tails.bounds(rank);
      const tail = tails.bytes(own);
      key = mask.keyOf(this.wordAt(at), tail);
      const expected = mask.tailOf(key);
      if (!areEqual(expected, tail)) {
        this.badElement('TAIL', tails.place(own[0]), tail, rank, shown(expected));
      }
    } else if (pages) {
      key = pages.key(rank);
      if (key === null) {
        // A place that is not valid is reported with the pages.
        this.previous = null;
        return;
      }
      if (key.length > mask.keyBytesMax || (mask.isFixed && key.length < mask.keyBytesMax)) {
        this.badElement(...place(), key, rank, `a key of ${mask.isFixed ? '' : 'at most '}${mask.keyBytesMax} bytes`);
      }
    } else if (mask.isLossless) {
      key = mask.keyOf(this.wordAt(at), null);
    }
    const whole = /** @type {Uint8Array} */ (key);
    if (keys && stored && !areEqual(stored, whole)) {
      this.badElement('KEYS', keys.place(bounds[0]), stored, rank, shown(whole));
    }
    this.checkKey(mask, rank, whole, this.wordAt(at), place);
    // A key that was made here stays; one in a page of the file may move with it.
    this.previous = stored ? whole.slice() : whole;
  }

  /**
   * Section and offset of a key.
   * @param {number} rank
   * @param {number} inKeys
   * @param {TextReader | null} pages
   * @returns {[string, number]}
   */
  placeOf(rank, inKeys, pages) {
    if (pages) {
      return ['TEXT', pages.place(rank)];
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
   * @param {Mask} mask
   * @param {number} rank
   * @param {Uint8Array} key
   * @param {Uint32Array} word
   * @param {() => [string, number]} place
   */
  checkKey(mask, rank, key, word, place) {
    const { header } = this;
    const own = this.ownWord;
    const hasWord = mask.wordOf(key, own);
    if (!hasWord || own[0] !== word[0] || own[1] !== word[1] || own[2] !== word[2] || own[3] !== word[3]) {
      this.badElement(...place(), key, rank, 'a key of this word');
    }
    const order = this.previous ? compareBytes(this.previous, key) : -1;
    if (order > 0 || (order === 0 && header.isUnique)) {
      this.badElement(...place(), key, rank, 'a key in order');
    }
    if (header.keyType.name === 'utf8' && !isUtf8(key)) {
      this.badElement(...place(), key, rank, 'valid UTF-8');
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
