/**
 * Checks of TRIE. A node is compared with the keys at which its pages part.
 */
import { KEY_BYTES_MAX, differAt, sliceOf, trieNode } from '../text.js';
import { Pages, Stream, areOnes, firstNonZero } from './reader.js';
import { TextReader } from './text.js';

/**
 * @typedef {import('./reader.js').Job} Job
 * @typedef {import('../header.js').Header} Header
 */

/** Pages whose outermost keys are kept. */
const ENDS_MAX = 64;

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
      if (depth > 0 && this.isPlainNode(at, number, depth)) {
        return;
      }
      const node = trieNode(this.stream.view, at);
      const isPadded = this.isPadded(at, node);
      if (depth === 0 && isSound) {
        this.wrong(number, 'a parent', 'none', 'every node but the first must be the child of one before it');
      }
      if (!isPadded) {
        this.wrong(number, 'a node', 'other bytes', 'unused fields of a node must be padded');
      }
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

  /**
   * Reports whether a node is plainly right, and marks its children. What is not is looked at again.
   * @param {number} at
   * @param {number} number
   * @param {number} depth
   */
  isPlainNode(at, number, depth) {
    const { bytes, view } = this.stream;
    const [slots, isRun] = [bytes[at + 2], bytes[at + 3]];
    if (isRun !== 0 || slots > 10 || depth >= 64) {
      return false;
    }
    const words = at + 4 + 4 * slots + 4;
    if (firstNonZero(bytes, words, at + 48) >= 0 || !areOnes(bytes, at + 48 + 8 * slots, at + 128)) {
      return false;
    }
    for (let slice = at + 56; slice < at + 48 + 8 * slots; slice += 8) {
      const [high, before] = [view.getUint32(slice + 4, true), view.getUint32(slice - 4, true)];
      if (high < before || (high === before && view.getUint32(slice, true) <= view.getUint32(slice - 8, true))) {
        return false;
      }
    }
    let least = number;
    for (let child = at + 4; child < words; child += 4) {
      const word = view.getUint32(child, true);
      const node = word & 0x7fffffff;
      if (word >>> 31 === 0) {
        if ((word & 0x1fffffff) + (word >>> 29) >= this.pages) {
          return false;
        }
      } else if (node <= least || node >= this.nodes || this.depths[node] !== 0) {
        return false;
      } else {
        least = node;
      }
    }
    for (let child = at + 4; child < words; child += 4) {
      const word = view.getUint32(child, true);
      if (word >>> 31) {
        this.depths[word & 0x7fffffff] = depth + 1;
      }
    }
    return true;
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

  /**
   * Reports whether a node that is not the first one leads to pages in order, and parts their keys.
   * @param {number} number
   * @param {number} at
   */
  isPlainlyParting(number, at) {
    const { bytes, view } = this.stream;
    const slots = bytes[at + 2];
    if (number === 0 || bytes[at + 3] !== 0) {
      return false;
    }
    const prefix = view.getUint16(at, true);
    const first = this.pageUnder(view.getUint32(at + 4, true), false);
    const last = this.pageUnder(view.getUint32(at + 4 + 4 * slots, true), true);
    let end = this.pageUnder(view.getUint32(at + 4, true), true);
    if (first > end || (first < last && !this.isShared(first, last, prefix))) {
      return false;
    }
    for (let slot = 0; slot < slots; slot++) {
      const child = view.getUint32(at + 8 + 4 * slot, true);
      const begin = this.pageUnder(child, false);
      const next = this.pageUnder(child, true);
      const slice = at + 48 + 8 * slot;
      const [low, high] = [view.getUint32(slice, true), view.getUint32(slice + 4, true)];
      if (begin > next || begin < end || begin > end + 1) {
        return false;
      }
      const left = begin > first ? this.endsOf(begin - 1) : null;
      const right = end < last ? this.headOf(end + 1) : null;
      if ((left && !isBelow(left[1], prefix, high, low)) || (right && isBelow(right, prefix, high, low))) {
        return false;
      }
      end = next;
    }
    return true;
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

  /** @param {number} number */
  checkNode(number) {
    const at = this.stream.at(this.offset + 128 * number, 128);
    if (this.isPlainlyParting(number, at)) {
      return;
    }
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
