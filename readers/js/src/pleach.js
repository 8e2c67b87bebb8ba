/**
 * An open file: look-ups, ranges and single tuples, from verified blocks.
 */
import { Blocks } from './blocks.js';
import { Damage, Refusal } from './error.js';
import { APPROXIMATE, HEAD_BYTES, Header } from './header.js';
import {
  approximateOf,
  elementText,
  meaningOf,
  numberOfBytes,
  bytesOfNumber,
  readElement,
  readHex,
  hexText,
} from './logical.js';
import { Mask, splitWord } from './mask.js';
import { readMeta, textOf } from './meta.js';
import { readFields, readRecord } from './record.js';
import { Search, viewOf, wordAt } from './search.js';
import { SYMBOLS_BYTES, TEXT_PAGE_KEYS } from './shape.js';
import { sourceOf } from './source.js';
import { Symbols, TextPage } from './text.js';
import { decodeNumber, encodeNumber, floatText, readValue } from './types.js';

/** Bytes that are read at first: the head, and the first block of META. */
const FIRST_BYTES = 16384;
/** Tuples that a range reads at once. */
const PAGE_TUPLES = 256;
const ENCODER = new TextEncoder();

/**
 * @typedef {number | bigint | string | Uint8Array} Key
 * @typedef {number | bigint | string | Uint8Array | null} Value
 * @typedef {{rank: number, key: Key, value: Value}} Tuple
 */

export class Pleach {
  /** @type {import('./logical.js').Logical} */ keyMeaning;
  /** @type {import('./logical.js').Logical} */ valueMeaning;
  /** @type {import('./record.js').Record | null} */ record;
  /** @type {{distinct: number} | null} */ approximate;

  /**
   * @param {ReturnType<typeof sourceOf>} source
   * @param {Header} header
   * @param {Blocks} blocks
   */
  constructor(source, header, blocks) {
    this.source = source;
    this.header = header;
    this.blocks = blocks;
    /** @type {Mask | null} */
    this.mask = null;
    /** @type {Symbols | null} */
    this.symbols = null;
    this.meta = readMeta(new Uint8Array(0));
    this.describe();
    this.search = new Search(this);
  }

  /**
   * Opens a file. Refuses one that breaks a rule; what is read is verified.
   * @param {unknown} from bytes, a `Blob`, or a source such as `HttpSource`
   * @param {{verify?: boolean, cacheBytes?: number}} [options]
   */
  static async open(from, options = {}) {
    const source = sourceOf(from);
    const first = await source.read(0, Math.min(FIRST_BYTES, source.bytes));
    const header = new Header(first.slice(0, HEAD_BYTES), source.bytes);
    const blocks = new Blocks(source, header, options);
    blocks.early = { offset: 0, bytes: first };
    const file = new Pleach(source, header, blocks);
    await file.readParts();
    blocks.early = null;
    return file;
  }

  async readParts() {
    const { header, blocks } = this;
    const mask = header.find('MASK');
    if (mask) {
      this.mask = new Mask(await blocks.bytes(mask, 0, mask.length), header.wordBytes);
      checkMask(header, this.mask);
    }
    const meta = header.find('META');
    if (meta) {
      this.meta = readMeta(await blocks.bytes(meta, 0, meta.length));
    }
    this.describe();
    checkApproximate(header, this.meta, this.keyMeaning);
  }

  /** Takes names and meanings from META. */
  describe() {
    const { keyType, valueType, tuples } = this.header;
    this.keyMeaning = meaningOf(this.meta.keyLogical, keyType.name);
    this.valueMeaning = meaningOf(this.meta.valueLogical, valueType.name);
    this.record = readRecord(this.meta.valueLogical, valueType.name);
    this.approximate = approximateOf(this.keyMeaning, this.meta.approximate, tuples);
  }

  get tuples() {
    return this.header.tuples;
  }

  get keyType() {
    return this.header.keyType.name;
  }

  get valueType() {
    return this.header.valueType.name;
  }

  /** Names of the structures by which keys can be found. */
  get structures() {
    return this.header.structures();
  }

  /**
   * Returns the place of a numeric key among the words.
   * @param {Key} key
   */
  place(key) {
    const { keyType, short } = this.header;
    const word = typeof key === 'number' || typeof key === 'bigint' ? encodeNumber(keyType, key) : null;
    if (word === null) {
      throw new TypeError(`a key of this file is a number of type ${keyType.name}`);
    }
    return short ? short.place(word) : { word, isKey: true, isEnd: false };
  }

  /** Returns the bytes of a byte key. @param {Key} key */
  queryBytes(key) {
    if (typeof key === 'string') {
      return ENCODER.encode(key);
    }
    if (key instanceof Uint8Array) {
      return key;
    }
    throw new TypeError('a key of this file is a byte string or a text');
  }

  /**
   * Returns how many tuples have smaller keys.
   * @param {Key} key
   * @param {{by?: string}} [options] the structure to use
   */
  async lower(key, options = {}) {
    this.checkWay(options.by);
    if (this.header.keyType.isBytes) {
      return this.search.lowerBytes(this.queryBytes(key), options.by);
    }
    const place = this.place(key);
    return place.isEnd ? this.tuples : this.search.lowerWord(place.word, options.by);
  }

  /** @param {string | undefined} way */
  checkWay(way) {
    if (way !== undefined && !this.structures.includes(way)) {
      throw new RangeError(`the file has no structure ${way}: it has ${this.structures.join(', ')}`);
    }
  }

  /**
   * Returns how many tuples have smaller or equal keys.
   * @param {Key} key
   */
  async upper(key) {
    if (this.header.keyType.isBytes) {
      const query = this.queryBytes(key);
      const next = new Uint8Array(query.length + 1);
      next.set(query);
      return this.search.lowerBytes(next);
    }
    const place = this.place(key);
    if (place.isEnd) {
      return this.tuples;
    }
    return place.isKey ? this.search.upperWord(place.word) : this.search.lowerWord(place.word);
  }

  /**
   * Returns the first tuple with a key; null if there is none.
   * @param {Key} key
   * @returns {Promise<Tuple | null>}
   */
  async get(key) {
    const rank = await this.lower(key);
    if (rank >= this.tuples) {
      return null;
    }
    if (this.header.keyType.isBytes) {
      const query = this.queryBytes(key);
      const found = await this.byteKey(rank);
      const isSame = found.length === query.length && found.every((byte, at) => byte === query[at]);
      return isSame ? this.at(rank) : null;
    }
    const place = this.place(key);
    return place.isKey && (await this.search.word(rank)) === place.word ? this.at(rank) : null;
  }

  /**
   * Returns the last tuple whose key is at most this; null if there is none.
   * @param {Key} key
   * @returns {Promise<Tuple | null>}
   */
  async floor(key) {
    const rank = await this.upper(key);
    return rank > 0 ? this.at(rank - 1) : null;
  }

  /**
   * Returns the tuple of a rank; null if there is none.
   * @param {number} rank
   * @returns {Promise<Tuple | null>}
   */
  async at(rank) {
    if (!(rank >= 0 && rank < this.tuples)) {
      return null;
    }
    const [key, value] = await Promise.all([this.keyAt(rank), this.valueAt(rank)]);
    return { rank, key, value };
  }

  /**
   * Yields the tuples of some ranks.
   * @param {number} first
   * @param {number} end
   */
  async *ranks(first, end) {
    const last = Math.min(end, this.tuples);
    for (let from = Math.max(first, 0); from < last; from += PAGE_TUPLES) {
      const to = Math.min(from + PAGE_TUPLES, last);
      await this.prefetch(from, to);
      for (let rank = from; rank < to; rank++) {
        yield /** @type {Tuple} */ (await this.at(rank));
      }
    }
  }

  /**
   * Reads the blocks of some ranks in few requests, as far as their places are known without reading.
   * @param {number} first
   * @param {number} end
   */
  async prefetch(first, end) {
    const { header, blocks } = this;
    const { lineTuples } = header;
    const line = Math.floor(first / lineTuples);
    const waits = [blocks.bytes(header.line, 64 * line, 64 * (Math.floor((end - 1) / lineTuples) + 1 - line))];
    for (const [tag, column] of this.columns()) {
      const { elementBytes, offsetBytes } = column.shape;
      const section = header.find(tag);
      const width = elementBytes || offsetBytes;
      if (section && (end - first + 1) * width < 1 << 20) {
        waits.push(blocks.bytes(section, first * width, (end - first) * width));
      }
    }
    await Promise.all(waits);
  }

  /** @returns {[string, {offset: number, shape: import('./shape.js').ColumnShape}][]} columns by rank */
  columns() {
    const { tails, keys, values, codes } = this.header;
    const all = [
      ['TAIL', tails],
      ['KEYS', keys],
      ['CODE', codes],
      ['VALS', codes ? null : values],
    ];
    return /** @type {any} */ (all.filter((entry) => entry[1]));
  }

  /**
   * Yields the tuples from the first key up to, not with, the second. Without one, the range is open there.
   * @param {Key | null} from
   * @param {Key | null} to
   */
  async *range(from, to) {
    const first = from === null ? 0 : await this.lower(from);
    const end = to === null ? this.tuples : await this.lower(to);
    yield* this.ranks(first, end);
  }

  /**
   * Returns the key of a rank.
   * @param {number} rank
   * @returns {Promise<Key>}
   */
  async keyAt(rank) {
    const { keyType, short } = this.header;
    if (keyType.isBytes) {
      const key = await this.byteKey(rank);
      return keyType.name === 'utf8' ? textOf(key) : key.slice();
    }
    const word = await this.search.word(rank);
    return decodeNumber(keyType, short ? short.key(word) : word);
  }

  /**
   * Returns the bytes of the key of a rank.
   * @param {number} rank
   * @returns {Promise<Uint8Array>}
   */
  async byteKey(rank) {
    const { header } = this;
    if (header.text) {
      const page = await this.textPage(Math.floor(rank / TEXT_PAGE_KEYS));
      return page.key(rank % TEXT_PAGE_KEYS);
    }
    const mask = /** @type {Mask} */ (this.mask);
    if (!mask.isLossless && !header.tails) {
      return this.element('KEYS', rank);
    }
    const word = splitWord(await this.search.word(rank), new Uint32Array(4));
    return mask.keyOf(word, header.tails ? await this.element('TAIL', rank) : null);
  }

  /**
   * Returns a page of TEXT.
   * @param {number} page
   */
  async textPage(page) {
    const { header, blocks } = this;
    const text = /** @type {import('./header.js').Placed<import('./shape.js').TextShape>} */ (header.text);
    const section = /** @type {import('./header.js').Section} */ (header.find('TEXT'));
    this.symbols ??= new Symbols(await blocks.bytes(section, 0, SYMBOLS_BYTES));
    const { placeBytes, pagesAt, dataBytes, keys } = text.shape;
    const places = viewOf(await blocks.bytes(section, SYMBOLS_BYTES + page * placeBytes, 2 * placeBytes));
    const start = Math.min(Number(wordAt(places, 0, placeBytes)), dataBytes);
    const end = Math.min(Number(wordAt(places, placeBytes, placeBytes)), dataBytes, start + 2 ** 21);
    const bytes = await blocks.bytes(section, pagesAt + start, Math.max(end - start, 0));
    return new TextPage(bytes, Math.min(keys - page * TEXT_PAGE_KEYS, TEXT_PAGE_KEYS), this.symbols);
  }

  /**
   * Returns an element of a column.
   * @param {string} tag
   * @param {number} rank
   * @returns {Promise<Uint8Array>}
   */
  async element(tag, rank) {
    const { header, blocks } = this;
    const columns = { TAIL: header.tails, KEYS: header.keys, VALS: header.values, CODE: header.codes };
    const { shape } = /** @type {any} */ (columns)[tag];
    const section = /** @type {import('./header.js').Section} */ (header.find(tag));
    if (shape.offsetBytes === 0) {
      return blocks.bytes(section, rank * shape.elementBytes, shape.elementBytes);
    }
    const offsets = viewOf(await blocks.bytes(section, rank * shape.offsetBytes, 2 * shape.offsetBytes));
    const start = Number(wordAt(offsets, 0, shape.offsetBytes));
    const end = Number(wordAt(offsets, shape.offsetBytes, shape.offsetBytes));
    if (start > end || end > shape.dataBytes) {
      throw new Damage('column', tag, section.offset + rank * shape.offsetBytes, 'offsets do not ascend');
    }
    return blocks.bytes(section, shape.dataAt + start, end - start);
  }

  /**
   * Returns the value of a rank; null if the file has no values.
   * @param {number} rank
   * @returns {Promise<Value>}
   */
  async valueAt(rank) {
    const { valueType, valueBytes, valuesAt, lineTuples } = this.header;
    if (valueType.name === 'none') {
      return null;
    }
    if (!valueType.isBytes) {
      const line = await this.search.line(Math.floor(rank / lineTuples));
      return readValue(valueType, line, valuesAt + (rank % lineTuples) * valueBytes);
    }
    const bytes = await this.valueBytesAt(rank);
    return valueType.name === 'utf8' ? textOf(bytes) : bytes.slice();
  }

  /**
   * Returns the bytes of the value of a rank, of values that are byte strings.
   * @param {number} rank
   */
  async valueBytesAt(rank) {
    const { codes, values } = this.header;
    if (!codes) {
      return this.element('VALS', rank);
    }
    const code = await this.element('CODE', rank);
    const number = Number(wordAt(viewOf(code), 0, code.length));
    return this.element('VALS', Math.min(number, (values?.shape.elements ?? 1) - 1));
  }

  /**
   * Reads a key from a text: by the logical type if there is one, else as the key type is written. Null if it is
   * none. Byte keys are hexadecimal digits; those of one length may also be a text of that length.
   * @param {string} text
   * @returns {Key | null}
   */
  parseKey(text) {
    const { keyType } = this.header;
    const { kind } = this.keyMeaning;
    if (kind !== 'plain' && kind !== 'unknown' && kind !== 'record') {
      return this.keyOfElement(readElement(this.keyMeaning, text));
    }
    if (keyType.name === 'utf8') {
      return text;
    }
    if (keyType.isBytes) {
      const bytes = readHex(text);
      const plain = ENCODER.encode(text);
      if (keyType.fixed !== null && bytes?.length !== keyType.fixed) {
        return plain.length === keyType.fixed ? plain : bytes;
      }
      return bytes;
    }
    if (keyType.name === 'f64') {
      const number = Number(text);
      return text.trim() === '' || Number.isNaN(number) ? null : number;
    }
    return /^[+-]?[0-9]+$/.test(text) ? this.checkedNumber(BigInt(text)) : null;
  }

  /** @param {bigint} number @returns {Key | null} */
  checkedNumber(number) {
    const word = encodeNumber(this.header.keyType, number);
    return word === null ? null : decodeNumber(this.header.keyType, word);
  }

  /**
   * @param {bigint | Uint8Array | null} element
   * @returns {Key | null}
   */
  keyOfElement(element) {
    const { keyType } = this.header;
    if (element === null) {
      return null;
    }
    if (typeof element !== 'bigint') {
      return keyType.name === 'utf8' ? textOf(element) : keyType.isBytes ? element : null;
    }
    return keyType.isBytes ? bytesOfNumber(element, keyType.fixed ?? 16) : this.checkedNumber(element);
  }

  /**
   * Prints a key by its logical type.
   * @param {Key} key
   * @returns {string}
   */
  formatKey(key) {
    return format(this.keyMeaning, key, this.keyType);
  }

  /**
   * Prints a value by its logical type; a record as `{name: value, ...}`.
   * @param {Value} value
   * @returns {string}
   */
  formatValue(value) {
    if (value === null) {
      return '';
    }
    const { record } = this;
    if (!record) {
      return format(this.valueMeaning, value, this.valueType);
    }
    const fields = this.fields(value).map((field, at) => {
      const own = record.fields[at];
      return `${own.name}: ${format(meaningOf(own.logical, own.kind), field, own.kind)}`;
    });
    return `{${fields.join(', ')}}`;
  }

  /**
   * Returns the fields of a record value.
   * @param {Value} value
   * @returns {(number | bigint | string | Uint8Array)[]}
   */
  fields(value) {
    if (!this.record || value === null) {
      return [];
    }
    if (value instanceof Uint8Array) {
      return readFields(this.record, value);
    }
    return readFields(this.record, bytesOfNumber(BigInt(value), this.record.bytes).reverse());
  }
}

/**
 * @param {import('./logical.js').Logical} meaning
 * @param {number | bigint | string | Uint8Array} element
 * @param {string} type
 */
function format(meaning, element, type) {
  const isPlain = meaning.kind === 'plain' || meaning.kind === 'unknown' || meaning.kind === 'record';
  if (element instanceof Uint8Array) {
    return isPlain ? hexText(element) : elementText(meaning, element);
  }
  if (typeof element === 'string') {
    return element;
  }
  if (type === 'f32' || type === 'f64') {
    return floatText(Number(element), type === 'f32');
  }
  return isPlain ? String(element) : elementText(meaning, BigInt(element));
}

/**
 * Refuses a MASK that does not go with the other sections.
 * @param {Header} header
 * @param {Mask} mask
 */
export function checkMask(header, mask) {
  const { fixed } = header.keyType;
  if (mask.isFixed !== (fixed !== null) || (fixed !== null && fixed !== mask.keyBytesMax)) {
    throw new Refusal('mask', `keys of ${mask.keyBytesMax} bytes`);
  }
  if (mask.tailBytes !== (header.tails?.shape.elementBytes ?? 0)) {
    throw new Refusal('tail', `tails of ${mask.tailBytes} bytes`);
  }
  if (!mask.isLossless && mask.tailBytes === 0 && !header.keys && !header.text) {
    throw new Refusal('keys-missing');
  }
}

/**
 * Refuses a file that does not say rightly whether its keys are shorter than those they stand for.
 * @param {Header} header
 * @param {import('./meta.js').Meta} meta
 * @param {import('./logical.js').Logical} meaning
 */
export function checkApproximate(header, meta, meaning) {
  const isFlagged = (header.readerFeatures & APPROXIMATE) !== 0n;
  const says = approximateOf(meaning, meta.approximate, header.tuples) !== null;
  if (isFlagged !== says || (meta.approximate !== '') !== says) {
    throw new Refusal('approximate');
  }
}
