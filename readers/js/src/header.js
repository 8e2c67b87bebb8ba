/**
 * The head of a file: superblock and section table. Everything is checked before it is used, in the order of the
 * numbered rules; what breaks one is refused by its name.
 */
import { crc32 } from './crc.js';
import { Refusal } from './error.js';
import { fastShape } from './classic.js';
import {
  Parameters,
  alignUp,
  btreeShape,
  codesAgree,
  columnShape,
  gridShape,
  harmoniaShape,
  packShape,
  spineShape,
  textShape,
  trieShape,
} from './shape.js';
import { Short } from './short.js';
import { keyTypeOf, lineBytes, valueTypeOf } from './types.js';

export const MAGIC = Uint8Array.of(0x89, 0x50, 0x4c, 0x45, 0x41, 0x43, 0x48, 13, 10, 0x1a, 10, 0, 0, 0, 0, 0);
export const PAGE_BYTES = 4096;
export const HEAD_BYTES = 8192;
export const BLOCK_BYTES = 8192;
/** Bit 0 of reader_features: keys are shorter than those they stand for. */
export const APPROXIMATE = 1n;
const KNOWN_FEATURES = APPROXIMATE;
/** The newest minor version that this reader knows. */
export const MINOR = 0;
const REQUIRED = 1;
const META_BYTES_MAX = 1048576;
const MASK_BYTES_MAX = 131102;
const TAGS = [
  'META',
  'LINE',
  'SPIN',
  'GRID',
  'MASK',
  'TAIL',
  'KEYS',
  'TEXT',
  'TRIE',
  'VALS',
  'CODE',
  'PACK',
  'FAST',
  'HARM',
  'BTRE',
  'SUMS',
  'SUM2',
];

/**
 * @typedef {object} Section an entry of the section table
 * @property {string} tag
 * @property {Uint8Array} tagBytes
 * @property {number} index
 * @property {number} flags
 * @property {number} offset
 * @property {number} length
 * @property {number} elements
 * @property {number} sumsOffset
 * @property {number} sums
 * @property {number} sumsCrc
 * @property {Parameters} parameters
 * @property {Uint8Array} entry its 128 bytes
 * @property {number} end where its extent ends
 */

/**
 * @template T
 * @typedef {{offset: number, shape: T}} Placed
 */

export class Header {
  /** @type {string} */ version;
  /** @type {number} */ minor;
  /** @type {bigint} */ readerFeatures;
  /** @type {Uint8Array} */ fileId;
  /** @type {bigint} */ generation;
  /** @type {number} */ tuples;
  /** @type {import('./types.js').Type} */ keyType;
  /** @type {import('./types.js').Type} */ valueType;
  /** @type {boolean} */ isUnique;
  /** @type {Section} */ sums;
  /** @type {Section} */ sum2;
  /** @type {Section} */ line;
  /** @type {number} */ wordBytes;
  /** @type {number} */ valueBytes;
  /** @type {number} tuples of a full line */ lineTuples;
  /** @type {number} */ lines;
  /** @type {number} where values begin in a line */ valuesAt;
  /** @type {Short | null} */ short;
  /** @type {Placed<import('./shape.js').SpineShape> | null} */ spine;
  /** @type {Placed<import('./shape.js').ColumnShape> | null} */ tails;
  /** @type {Placed<import('./shape.js').ColumnShape> | null} */ keys;
  /** @type {Placed<import('./shape.js').ColumnShape> | null} */ values;
  /** @type {Placed<import('./shape.js').ColumnShape> | null} */ codes;
  /** @type {Placed<import('./shape.js').TextShape> | null} */ text;
  /** @type {Placed<{nodes: number, levels: number}> | null} */ trie;
  /** @type {Placed<import('./shape.js').PackShape> | null} */ packed;
  /** @type {Placed<import('./shape.js').GridShape> | null} */ grid;
  /** @type {Placed<import('./shape.js').HarmoniaShape> | null} */ harmonia;
  /** @type {Placed<import('./shape.js').BtreeShape> | null} */ btree;
  /** @type {Placed<import('./classic.js').FastShape> | null} */ fast;

  /**
   * @param {Uint8Array} head the first 8192 bytes, or all if there are fewer
   * @param {number} bytes length of the file
   */
  constructor(head, bytes) {
    this.head = head;
    this.bytes = bytes;
    this.view = new DataView(head.buffer, head.byteOffset, head.length);
    this.readSuperblock();
    this.readTypes();
    /** @type {Section[]} */
    this.sections = this.readTable();
    this.checkTable();
    this.checkSums();
    this.readLines();
    this.readSpine();
    this.readColumns();
    this.readText();
    this.readOthers();
  }

  /** @param {number} at */
  u64(at) {
    return Number(this.view.getBigUint64(at, true));
  }

  readSuperblock() {
    const { head, view } = this;
    const known = head.subarray(0, 16);
    if (known.some((byte, at) => byte !== MAGIC[at])) {
      throw new Refusal('magic');
    }
    if (head.length < PAGE_BYTES) {
      throw new Refusal('truncated', `it has ${this.bytes} bytes`);
    }
    if (crc32(head, 0, 4092) !== view.getUint32(4092, true)) {
      throw new Refusal('superblock-sum');
    }
    const [major, minor] = [view.getUint16(16, true), view.getUint16(18, true)];
    if (major !== 1) {
      const upgrade = 'run `pleach upgrade FILE`';
      const advice = major > 1 ? 'use a newer program' : minor === 13 ? upgrade : 'build it again';
      throw new Refusal('version', `${major}.${minor}: ${advice}`);
    }
    this.version = `${major}.${minor}`;
    this.minor = minor;
    this.readerFeatures = view.getBigUint64(24, true);
    if ((this.readerFeatures & ~KNOWN_FEATURES) !== 0n) {
      throw new Refusal('feature', `reader_features are ${this.readerFeatures.toString(16)} in hexadecimal digits`);
    }
    const stored = this.u64(72);
    if (this.bytes < stored) {
      throw new Refusal('truncated', `it has ${this.bytes} of ${stored} bytes`);
    }
    if (this.bytes > stored) {
      throw new Refusal('extended', `it has ${this.bytes} bytes instead of ${stored}`);
    }
    if (stored % PAGE_BYTES !== 0 || stored < 4 * PAGE_BYTES) {
      throw new Refusal('pages', `it has ${stored} bytes`);
    }
    this.fileId = head.slice(48, 64);
    this.generation = view.getBigUint64(64, true);
    this.tuples = this.u64(80);
  }

  readTypes() {
    const { view } = this;
    const [keyCode, valueCode] = [view.getUint16(88, true), view.getUint16(90, true)];
    const key = keyTypeOf(keyCode, view.getUint32(92, true));
    if (!key) {
      throw new Refusal('key-type', `code ${keyCode}, ${view.getUint32(92, true)} bytes`);
    }
    const value = valueTypeOf(valueCode, view.getUint32(96, true));
    if (!value) {
      throw new Refusal('value-type', `code ${valueCode}, ${view.getUint32(96, true)} bytes`);
    }
    this.keyType = key;
    this.valueType = value;
    if (view.getUint32(100, true) > 1) {
      throw new Refusal('unique', `it is ${view.getUint32(100, true)}`);
    }
    this.isUnique = view.getUint32(100, true) === 1;
  }

  /** @returns {Section[]} */
  readTable() {
    const { head, view } = this;
    if (this.u64(104) !== PAGE_BYTES || this.u64(112) !== PAGE_BYTES) {
      throw new Refusal('table-place');
    }
    const count = view.getUint32(120, true);
    if (count > 31) {
      throw new Refusal('table-entries', `it has ${count}`);
    }
    if (crc32(head, PAGE_BYTES, HEAD_BYTES) !== view.getUint32(124, true)) {
      throw new Refusal('table-sum');
    }
    const sections = [];
    for (let index = 0; index < count; index++) {
      const at = PAGE_BYTES + 128 * index;
      const tagBytes = head.slice(at, at + 4);
      sections.push({
        tag: String.fromCharCode(...tagBytes),
        tagBytes,
        index,
        flags: view.getUint32(at + 4, true),
        offset: this.u64(at + 8),
        length: this.u64(at + 16),
        elements: this.u64(at + 24),
        sumsOffset: this.u64(at + 32),
        sums: this.u64(at + 40),
        sumsCrc: view.getUint32(at + 48, true),
        parameters: new Parameters(head.slice(at + 56, at + 120)),
        entry: head.slice(at, at + 128),
        end: index + 1 < count ? this.u64(at + 128 + 8) : this.bytes - 2 * PAGE_BYTES,
      });
    }
    return sections;
  }

  /**
   * Refuses the file if a section breaks a rule.
   * @param {string} rule
   * @param {(section: Section) => boolean} breaks
   */
  refuseIf(rule, breaks) {
    const bad = this.sections.find(breaks);
    if (bad) {
      throw new Refusal(rule, shown(bad.tag));
    }
  }

  checkTable() {
    const closing = this.bytes - 2 * PAGE_BYTES;
    const first = this.sections[0];
    if (first && first.offset !== HEAD_BYTES) {
      throw new Refusal('first-section', `it begins at byte ${first.offset}`);
    }
    this.refuseIf('alignment', (it) => (it.entry[8] | ((it.entry[9] & 15) << 8)) !== 0);
    this.refuseIf('section-order', (it) => it.end < it.offset || it.end > closing);
    this.refuseIf('section-end', (it) => alignUp(it.length, 128) > it.end - it.offset);
    this.refuseIf('section-gap', (it) => it.end - it.offset - it.length >= 2 ** 21);
    this.refuseIf('section-large', (it) => {
      const most = it.tag === 'META' ? META_BYTES_MAX : it.tag === 'MASK' ? MASK_BYTES_MAX : Infinity;
      return it.length > most;
    });
    this.refuseIf('flags', (it) => (it.flags & ~REQUIRED) !== 0);
    this.refuseIf('required-section', (it) => it.flags === REQUIRED && !TAGS.includes(it.tag));
    this.refuseIf('section-twice', (it) => this.sections.findIndex((other) => other.tag === it.tag) < it.index);
    this.refuseIf('reserved', (it) =>
      [...it.entry.subarray(52, 56), ...it.entry.subarray(120)].some((byte) => byte !== 0),
    );
  }

  checkSums() {
    const [sums, sum2] = [this.find('SUMS'), this.find('SUM2')];
    if (!sums || !sum2) {
      throw new Refusal('sums-missing');
    }
    this.sums = sums;
    this.sum2 = sum2;
    if (sum2.sumsOffset !== 0 || sum2.sums !== 0) {
      throw new Refusal('sum2-list');
    }
    if (sum2.length !== 4 * sums.sums) {
      throw new Refusal('sum2-length', `it has ${sum2.length} bytes`);
    }
    const others = this.sections.filter((it) => it !== sum2);
    for (const it of others) {
      if (it.sums !== Math.ceil((it.end - it.offset) / BLOCK_BYTES)) {
        throw new Refusal('sums-count', shown(it.tag));
      }
    }
    for (const it of others) {
      const home = it === sums ? sum2 : sums;
      const isInside = it.sumsOffset >= home.offset && it.sumsOffset + 4 * it.sums <= home.offset + home.length;
      if (!isInside || (it.entry[32] & 3) !== 0) {
        throw new Refusal('sums-place', shown(it.tag));
      }
    }
  }

  /**
   * Returns the section with this tag.
   * @param {string} tag
   */
  find(tag) {
    return this.sections.find((section) => section.tag === tag);
  }

  readLines() {
    const line = this.find('LINE');
    if (!line) {
      throw new Refusal('line-missing');
    }
    const { keyType, valueType, tuples } = this;
    const stored = line.parameters;
    const wordBytes = stored.u32(4);
    const isLonger = !keyType.isBytes && wordBytes > keyType.bytes;
    if (![4, 8, 16].includes(wordBytes) || isLonger) {
      throw new Refusal('word-bytes', `they have ${wordBytes}`);
    }
    this.short = null;
    if (!keyType.isBytes && wordBytes < keyType.bytes) {
      this.short = Short.of(stored, keyType.bytes, wordBytes);
      if (!this.short) {
        throw new Refusal('short-words');
      }
    }
    const valueBytes = lineBytes(valueType);
    const lineTuples = Math.floor(64 / (wordBytes + valueBytes));
    const lines = Math.ceil(tuples / lineTuples);
    if (line.length !== alignUp(64 * lines, 128) || line.elements !== tuples) {
      throw new Refusal('line-length', `it has ${line.length} bytes`);
    }
    const isPlain = this.short !== null || stored.areZero(16, 40);
    const agree = stored.u32(0) === 64 && stored.u32(8) === valueBytes && stored.u32(12) === lineTuples;
    if (!agree || !isPlain || !stored.areZero(40)) {
      throw new Refusal('line-parameters');
    }
    this.line = line;
    this.wordBytes = wordBytes;
    this.valueBytes = valueBytes;
    this.lineTuples = lineTuples;
    this.lines = lines;
    this.valuesAt = 64 - lineTuples * valueBytes;
  }

  readSpine() {
    const section = this.find('SPIN');
    this.spine = null;
    if (section) {
      const shape = spineShape(section.parameters, this.lines, this.wordBytes, section.elements, section.length);
      if (!shape) {
        throw new Refusal('spine');
      }
      this.spine = { offset: section.offset, shape };
    }
  }

  /**
   * Returns the place of a column of so many elements of this size, or of any size.
   * @param {string} tag
   * @param {number} count
   * @param {number | null} elementBytes
   * @returns {Placed<import('./shape.js').ColumnShape> | null}
   */
  column(tag, count, elementBytes) {
    const section = this.find(tag);
    if (!section) {
      return null;
    }
    const shape = columnShape(section.parameters, section.elements, section.length);
    const wanted = elementBytes ?? Math.max(shape?.elementBytes ?? 1, 1);
    if (!shape || shape.elements !== count || shape.elementBytes !== wanted) {
      throw new Refusal('column', tag);
    }
    return { offset: section.offset, shape };
  }

  readColumns() {
    const { tuples } = this;
    this.tails = this.column('TAIL', tuples, null);
    this.keys = this.column('KEYS', tuples, this.keyType.bytes);
    this.codes = this.column('CODE', tuples, null);
    const values = this.find('VALS');
    this.values = this.column('VALS', this.codes && values ? values.elements : tuples, this.valueType.bytes);
    if (this.tails && !this.keyType.isBytes) {
      throw new Refusal('column', 'TAIL beside numeric keys');
    }
    if (this.values && this.valueType.name === 'none') {
      throw new Refusal('column', 'VALS, and no values');
    }
    if (this.codes) {
      if (!this.valueType.isBytes || !this.values || !codesAgree(this.codes.shape, this.values.shape, tuples)) {
        throw new Refusal('codes');
      }
    }
  }

  readText() {
    const [text, trie] = [this.find('TEXT'), this.find('TRIE')];
    this.text = null;
    this.trie = null;
    if (text) {
      const shape = textShape(text.parameters, text.elements, text.length);
      if (!shape || shape.keys !== this.tuples) {
        throw new Refusal('text');
      }
      if (!this.keyType.isBytes || this.tails || this.keys) {
        throw new Refusal('text', 'it stands beside TAIL, KEYS or numeric keys');
      }
      this.text = { offset: text.offset, shape };
    }
    if (trie) {
      const shape = trieShape(trie.parameters, trie.elements, trie.length);
      const pages = this.text?.shape.pages ?? 0;
      if (!shape || pages < 2 || pages >= 2 ** 29) {
        throw new Refusal('trie');
      }
      this.trie = { offset: trie.offset, shape };
    }
    if (this.valueType.isBytes && !this.values) {
      throw new Refusal('values-missing');
    }
  }

  /**
   * Returns place and shape of a section, if it is there.
   * @template T
   * @param {string} tag
   * @param {string} rule
   * @param {(section: Section) => T | null} load
   * @returns {Placed<T> | null}
   */
  shaped(tag, rule, load) {
    const section = this.find(tag);
    if (!section) {
      return null;
    }
    const shape = load(section);
    if (!shape) {
      throw new Refusal(rule);
    }
    return { offset: section.offset, shape };
  }

  readOthers() {
    const { tuples, wordBytes, valueBytes, keyType } = this;
    this.packed = this.shaped('PACK', 'packed', (it) =>
      it.elements === tuples && !keyType.isBytes ? packShape(it.parameters, it.elements, it.length, wordBytes) : null,
    );
    this.grid = this.shaped('GRID', 'grid', (it) => gridShape(it.parameters, it.elements, it.length, wordBytes));
    this.harmonia = this.shaped('HARM', 'harmonia', (it) =>
      it.elements === tuples ? harmoniaShape(it.parameters, tuples, it.length, wordBytes, valueBytes) : null,
    );
    this.btree = this.shaped('BTRE', 'btree', (it) =>
      it.elements === tuples ? btreeShape(it.parameters, tuples, it.length, wordBytes, valueBytes) : null,
    );
    this.fast = this.shaped('FAST', 'fast', (it) =>
      it.elements === tuples ? fastShape(it.parameters, tuples, it.length, wordBytes) : null,
    );
    if (keyType.isBytes !== (this.find('MASK') !== undefined)) {
      throw new Refusal('mask-missing');
    }
  }

  /** Names of the structures that this file has. */
  structures() {
    const all = {
      lines: true,
      spine: this.spine,
      grid: this.grid,
      fast: this.fast,
      harmonia: this.harmonia,
      btree: this.btree,
      trie: this.trie,
    };
    return Object.entries(all)
      .filter((entry) => entry[1])
      .map((entry) => entry[0]);
  }

  /** Program that built the file. */
  get builder() {
    const end = this.head.subarray(264, 296).indexOf(0);
    return shown(String.fromCharCode(...this.head.subarray(264, 264 + (end < 0 ? 32 : end))));
  }

  /** File id of the first generation, if it is known. */
  get lineage() {
    const bytes = this.head.subarray(296, 312);
    return bytes.some((byte) => byte !== 0) ? bytes : null;
  }
}

/** Text of a file with everything but plain characters replaced. @param {string} text */
export const shown = (text) =>
  text.replace(/[^\x20-\x7e]/g, (it) => `\\x${it.charCodeAt(0).toString(16).padStart(2, '0')}`);
