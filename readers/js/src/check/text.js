/**
 * Checks of TEXT and TRIE. A page is decoded, and each of its fields must be the one that follows from its keys; only
 * the codes are free. A node is compared with the keys at which its pages part.
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
  differAt,
  printOf,
  sliceOf,
  trieNode,
} from '../text.js';
import { Stream, firstNonZero } from './reader.js';

/**
 * @typedef {import('./reader.js').Job} Job
 * @typedef {import('../header.js').Header} Header
 */

const PAGE_BYTES_MAX = HEAD_AT_WIDE + TEXT_PAGE_KEYS * KEY_BYTES_MAX;
/** Pages whose outermost keys are kept. */
const ENDS_MAX = 64;

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

/** Checks of the trie. */
export class TrieCheck {
  /**
   * @param {Job} job
   * @param {Header} header
   */
  constructor(job, header) {
    this.job = job;
    this.header = header;
    const trie = /** @type {import('../header.js').Placed<{nodes: number, levels: number}>} */ (header.trie);
    this.offset = trie.offset;
    this.nodes = trie.shape.nodes;
    this.levels = trie.shape.levels;
    this.text = new TextReader(job, header);
    this.pages = this.text.shape.pages;
    this.stream = new Stream(job.pages);
    this.away = new Stream(job.pages, 1);
    /** Nodes on the path to each node; 0 if none has led to it. */
    this.depths = new Uint8Array(this.nodes);
    /** @type {Map<number, [Uint8Array, Uint8Array] | null>} */
    this.ends = new Map();
  }

  async run() {
    const { job } = this;
    this.depths[0] = 1;
    let isSound = true;
    let levels = 0;
    await job.each(0, this.nodes, (number) => {
      const at = this.stream.at(this.offset + 128 * number, 128);
      const node = trieNode(this.stream.view, at);
      const isPadded = this.isPadded(at, node);
      const depth = this.depths[number];
      if (depth === 0 && isSound) {
        this.wrong(number, 'a parent', 'none', 'every node but the first must be the child of one before it');
      }
      if (!isPadded) {
        this.wrong(number, 'a node', 'other bytes', 'unused fields of a node must be padded');
      }
      levels = Math.max(levels, depth);
      const isGood = isPadded && this.isNode(number, node, depth);
      isSound = isSound && isGood && depth > 0;
    });
    if (isSound && levels !== this.levels) {
      const at = 4096 + 128 * (this.header.find('TRIE')?.index ?? 0) + 56 + 4;
      job.rule('trie', 'TRIE', at, 4, levels, this.levels, 'the table must count the nodes of the longest path');
    }
    if (isSound) {
      await job.each(0, this.nodes, (number) => this.checkNode(number), { weight: 128 });
    }
  }

  /** @param {number} number @param {unknown} expected @param {unknown} found @param {string} text */
  wrong(number, expected, found, text) {
    this.job.rule('trie', 'TRIE', this.offset + 128 * number, 128, expected, found, `node ${number}: ${text}`);
    return false;
  }

  /**
   * Reports whether the unused fields of a node are padded.
   * @param {number} at
   * @param {import('../text.js').TrieNode} node
   */
  isPadded(at, node) {
    const { bytes } = this.stream;
    const words = node.isRun ? 2 : node.slots + 1;
    const areZero = firstNonZero(bytes, at + 4 + 4 * words, at + 48) < 0;
    const areOnes = bytes.subarray(at + 48 + 8 * node.slots, at + 128).every((byte) => byte === 255);
    return bytes[at + 2] <= 10 && bytes[at + 3] <= 1 && areZero && areOnes;
  }

  /**
   * Reports whether the slices of a node ascend and its children are in their places; marks these.
   * @param {number} number
   * @param {import('../text.js').TrieNode} node
   * @param {number} depth
   */
  isNode(number, node, depth) {
    if (node.slices.some((slice, at) => at > 0 && node.slices[at - 1] >= slice)) {
      return this.wrong(number, 'ascending slices', 'others', 'slices must ascend');
    }
    if (node.isRun && node.slots > 0) {
      return this.wrong(number, 'no slots', `${node.slots} slots`, 'a node of pages has no slots');
    }
    for (const child of node.children) {
      if ('first' in child) {
        if (child.first + child.more >= this.pages) {
          const [expected, found] = [`pages below ${this.pages}`, `${child.first} and ${child.more} more`];
          return this.wrong(number, expected, found, 'pages of a node must be those of the section TEXT');
        }
      } else if (child.node <= number || child.node >= this.nodes) {
        return this.wrong(
          number,
          `above ${number}, below ${this.nodes}`,
          child.node,
          'a child must have a larger number',
        );
      } else if (this.depths[child.node] !== 0) {
        return this.wrong(number, 'another child', child.node, 'a node must be the child of one node');
      } else if (depth >= 64) {
        return this.wrong(number, '64 nodes', `${depth + 1} nodes`, 'a path has at most 64 nodes');
      } else {
        this.depths[child.node] = depth + 1;
      }
    }
    return true;
  }

  /**
   * The page at which a child begins, or at which it ends.
   * @param {import('../text.js').Child} child
   * @param {boolean} isLast
   */
  pageOf(child, isLast) {
    let own = child;
    // Paths have been checked: they are short, and lead to nodes of the section.
    while ('node' in own) {
      const at = this.away.at(this.offset + 128 * own.node, 128);
      const node = trieNode(this.away.view, at);
      own = node.children[isLast ? node.children.length - 1 : 0];
    }
    return own.first + (isLast ? own.more : 0);
  }

  /**
   * First and last key of a page; null if its place is not valid.
   * @param {number} page
   * @returns {[Uint8Array, Uint8Array] | null}
   */
  endsOf(page) {
    const found = this.ends.get(page);
    if (found !== undefined) {
      return found;
    }
    const held = this.text.pageOf(page);
    /** @type {[Uint8Array, Uint8Array] | null} */
    let ends = held ? [held.key(0), held.key(this.text.keysOf(page) - 1)] : null;
    if (ends && Math.max(ends[0].length, ends[1].length) > KEY_BYTES_MAX) {
      ends = null;
    }
    if (this.ends.size >= ENDS_MAX) {
      this.ends.clear();
    }
    this.ends.set(page, ends);
    return ends;
  }

  /** @param {number} number */
  checkNode(number) {
    const at = this.stream.at(this.offset + 128 * number, 128);
    const node = trieNode(this.stream.view, at);
    const children = node.children.map((child) => [this.pageOf(child, false), this.pageOf(child, true)]);
    const follow = children.every(([first, last], index) => {
      const before = index > 0 ? children[index - 1][1] : first;
      return first <= last && (first === before || first === before + 1);
    });
    if (!follow) {
      const text = 'each child must begin at the page where the one before it ends, or at the next';
      this.wrong(number, 'pages in order', children.join('; '), text);
      return;
    }
    const [first, last] = [children[0][0], children[children.length - 1][1]];
    if (number === 0 && (first !== 0 || last !== this.pages - 1)) {
      const [expected, found] = [`0 to ${this.pages - 1}`, `${first} to ${last}`];
      this.wrong(number, expected, found, 'the first node must lead to all pages');
    }
    if (first < last) {
      const below = this.endsOf(first);
      const above = this.endsOf(last);
      if (below && above && differAt(below[1], above[0], node.prefix) >= 0) {
        const text = 'the keys at which pages part must share the prefix';
        this.wrong(number, `${node.prefix} bytes that agree`, `others between pages ${first} and ${last}`, text);
      }
    }
    node.slices.forEach((slice, slot) => this.checkSlice(number, node, slot, slice, [first, last], children));
  }

  /**
   * @param {number} number
   * @param {import('../text.js').TrieNode} node
   * @param {number} slot
   * @param {bigint} slice
   * @param {number[]} range
   * @param {number[][]} children
   */
  checkSlice(number, node, slot, slice, [first, last], children) {
    const [end, begin] = [children[slot][1], children[slot + 1][0]];
    const left = begin > first ? this.endsOf(begin - 1) : null;
    if (left && sliceOf(left[1], node.prefix) >= slice) {
      this.wrong(number, 'a larger one', slice.toString(16), `slice ${slot} must be above the keys to its left`);
    }
    const right = end < last ? this.endsOf(end + 1) : null;
    if (right && sliceOf(right[0], node.prefix) < slice) {
      this.wrong(number, 'a smaller one', slice.toString(16), `slice ${slot} must not be above the keys to its right`);
    }
  }
}
