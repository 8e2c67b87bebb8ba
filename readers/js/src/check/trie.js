/**
 * Checks of TRIE. A node is compared with the keys at which its pages part.
 */
import { KEY_BYTES_MAX, differAt } from '../text.js';
import { Pages, Stream, areOnes, firstNonZero } from './reader.js';
import { TextReader } from './text.js';

/**
 * @typedef {import('./reader.js').Job} Job
 * @typedef {import('../header.js').Header} Header
 */

/** Pages whose outermost keys are kept. */
const ENDS_MAX = 64;

const NO_PARENT = 'every node but the first must be the child of one before it';
const OTHER_PAGES = 'pages of a node must be those of the section TEXT';
const PAGES_ORDER = 'each child must begin at the page where the one before it ends, or at the next';

/**
 * Reports whether the eight bytes of a key from one on are below a slice.
 * @param {Uint8Array} key
 * @param {number} at
 * @param {number} high
 * @param {number} low
 */
function isBelow(key, at, high, low) {
  const [one, other] = [halfOf(key, at), halfOf(key, at + 4)];
  return one < high || (one === high && other < low);
}

/** Four bytes of a key, with zeros behind it. @param {Uint8Array} key @param {number} at */
function halfOf(key, at) {
  let half = 0;
  for (let byte = at; byte < at + 4; byte++) {
    half = half * 256 + (byte < key.length ? key[byte] : 0);
  }
  return half;
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
    // Nodes below each other are far from each other.
    this.away = new Stream(new Pages(job.source, 4096, job.pages.bytes / 4), 1);
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
      const depth = this.depths[number];
      levels = Math.max(levels, depth);
      const fault = depth === 0 && isSound ? NO_PARENT : this.nodeFault(at, number, depth);
      if (fault) {
        this.wrong(number, fault);
        isSound = false;
      }
    });
    if (isSound && levels !== this.levels) {
      const at = 4096 + 128 * (this.header.find('TRIE')?.index ?? 0) + 56 + 4;
      job.rule('trie', 'TRIE', at, 4, levels, this.levels, 'the table must count the nodes of the longest path');
    }
    if (isSound) {
      await job.each(0, this.nodes, (number) => this.checkNode(number), { weight: 128 });
    }
  }

  /** @param {number} number @param {string} text */
  wrong(number, text) {
    this.job.rule('trie', 'TRIE', this.offset + 128 * number, 128, 'a node', 'other bytes', `node ${number}: ${text}`);
  }

  /**
   * Returns the rule that a node breaks by itself. Else marks its children.
   * @param {number} at
   * @param {number} number
   * @param {number} depth
   */
  nodeFault(at, number, depth) {
    const { bytes, view } = this.stream;
    const [slots, isRun] = [bytes[at + 2], bytes[at + 3]];
    if (isRun > 1 || slots > (isRun ? 0 : 10)) {
      return 'a node has at most 10 slots, and a node of pages has none';
    }
    const words = at + 4 + (isRun ? 8 : 4 * slots + 4);
    if (firstNonZero(bytes, words, at + 48) >= 0 || !areOnes(bytes, at + 48 + 8 * slots, at + 128)) {
      return 'unused fields of a node must be padded';
    }
    if (isRun) {
      return view.getUint32(at + 4, true) + view.getUint32(at + 8, true) < this.pages ? null : OTHER_PAGES;
    }
    for (let slice = at + 56; slice < at + 48 + 8 * slots; slice += 8) {
      const [high, before] = [view.getUint32(slice + 4, true), view.getUint32(slice - 4, true)];
      if (high < before || (high === before && view.getUint32(slice, true) <= view.getUint32(slice - 8, true))) {
        return 'slices must ascend';
      }
    }
    for (let child = at + 4; child < words; child += 4) {
      const word = view.getUint32(child, true);
      const node = word & 0x7fffffff;
      if (word >>> 31 === 0) {
        if ((word & 0x1fffffff) + (word >>> 29) >= this.pages) {
          return OTHER_PAGES;
        }
      } else if (node <= number || node >= this.nodes || this.depths[node] !== 0) {
        return 'a child must have a larger number, and one parent';
      } else if (depth === 64) {
        return 'a path has at most 64 nodes';
      } else {
        this.depths[node] = depth + 1;
      }
    }
    return null;
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
    const fault = this.partFault(number, this.stream.at(this.offset + 128 * number, 128));
    if (fault) {
      this.wrong(number, fault);
    }
  }

  /**
   * Returns the rule that a node breaks by the pages to which it leads, or by their keys.
   * @param {number} number
   * @param {number} at
   */
  partFault(number, at) {
    const { bytes, view } = this.stream;
    const [slots, isRun] = [bytes[at + 2], bytes[at + 3]];
    const prefix = view.getUint16(at, true);
    const own = view.getUint32(at + 4, true);
    const first = isRun ? own : this.pageUnder(own, false);
    let end = isRun ? first + view.getUint32(at + 8, true) : this.pageUnder(own, true);
    const last = slots > 0 ? this.pageUnder(view.getUint32(at + 4 + 4 * slots, true), true) : end;
    if (number === 0 && (first !== 0 || last !== this.pages - 1)) {
      return 'the first node must lead to all pages';
    }
    if (first > end) {
      return PAGES_ORDER;
    }
    if (first < last && !this.isShared(first, last, prefix)) {
      return 'the keys at which pages part must share the prefix';
    }
    for (let slot = 0; slot < slots; slot++) {
      const child = view.getUint32(at + 8 + 4 * slot, true);
      const begin = this.pageUnder(child, false);
      const next = this.pageUnder(child, true);
      const slice = at + 48 + 8 * slot;
      const [low, high] = [view.getUint32(slice, true), view.getUint32(slice + 4, true)];
      if (begin > next || begin < end || begin > end + 1) {
        return PAGES_ORDER;
      }
      const left = begin > first ? this.endsOf(begin - 1) : null;
      if (left && !isBelow(left[1], prefix, high, low)) {
        return 'a slice must be above the keys to its left';
      }
      const right = end < last ? this.headOf(end + 1) : null;
      if (right && isBelow(right, prefix, high, low)) {
        return 'a slice must not be above the keys to its right';
      }
      end = next;
    }
    return null;
  }

  /**
   * Reports whether the keys at which pages part agree so far.
   * @param {number} first
   * @param {number} last
   * @param {number} prefix
   */
  isShared(first, last, prefix) {
    const below = this.endsOf(first);
    const above = this.endsOf(last);
    return !below || !above || differAt(below[1], above[0], prefix) < 0;
  }

  /**
   * The page at which a child begins, or at which it ends.
   * @param {number} child as it is stored
   * @param {boolean} isLast
   */
  pageUnder(child, isLast) {
    let word = child;
    // Paths have been checked: they are short, and lead to nodes of the section.
    while (word >>> 31) {
      const at = this.away.at(this.offset + 128 * (word & 0x7fffffff), 128);
      const { bytes, view } = this.away;
      if (bytes[at + 3] !== 0) {
        return view.getUint32(at + 4, true) + (isLast ? view.getUint32(at + 8, true) : 0);
      }
      word = view.getUint32(at + 4 + (isLast ? 4 * bytes[at + 2] : 0), true);
    }
    return (word & 0x1fffffff) + (isLast ? word >>> 29 : 0);
  }

  /** The first key of a page; null if the place of the page is not valid. @param {number} page */
  headOf(page) {
    const held = this.text.pageOf(page);
    // Only a large page can have a key that is too long. Then neither of its keys is looked at.
    return held && 8 * held.bytes.length < KEY_BYTES_MAX ? held.head : (this.endsOf(page)?.[0] ?? null);
  }
}
