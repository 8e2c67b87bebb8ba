/**
 * Checks of the copies of the keys: HARM, BTRE, FAST and PACK, each part against the tuple lines.
 */
import {
  indexInPage,
  indexOf,
  pageRecord,
  pagedBytes,
  pagedLevels,
  placeOfPage,
  popcount,
  wordInPage,
} from '../classic.js';
import { btreeItems, btreeLastRank, harmoniaKeys, harmoniaLastRank } from '../shape.js';
import { wordAt } from '../search.js';
import { Pages, Stream, areEqual, firstNonZero } from './reader.js';

/**
 * @typedef {import('./reader.js').Job} Job
 * @typedef {import('../header.js').Header} Header
 */

/** Words and values of the tuple lines by rank. */
export class LineReader {
  /**
   * @param {Pages} pages
   * @param {Header} header
   * @param {number} [ahead]
   */
  constructor(pages, header, ahead = 16) {
    this.header = header;
    this.stream = new Stream(pages, ahead);
  }

  /** Place of a tuple's line in the stream. @param {number} rank */
  line(rank) {
    return this.stream.at(this.header.line.offset + 64 * Math.floor(rank / this.header.lineTuples), 64);
  }

  /** @param {number} rank */
  word(rank) {
    const { lineTuples, wordBytes } = this.header;
    // The line comes first: with it the stream may move to another page.
    const at = this.line(rank) + (rank % lineTuples) * wordBytes;
    return wordAt(this.stream.view, at, wordBytes);
  }

  /**
   * Reports whether the word of a rank stands at a place.
   * @param {number} rank
   * @param {Uint8Array} bytes
   * @param {number} at
   */
  isWord(rank, bytes, at) {
    const { lineTuples, wordBytes } = this.header;
    const own = this.line(rank) + (rank % lineTuples) * wordBytes;
    return this.areSame(own, wordBytes, bytes, at);
  }

  /**
   * @param {number} rank
   * @param {Uint8Array} bytes
   * @param {number} at
   */
  isValue(rank, bytes, at) {
    const { lineTuples, valueBytes, valuesAt } = this.header;
    return this.areSame(this.line(rank) + valuesAt + (rank % lineTuples) * valueBytes, valueBytes, bytes, at);
  }

  /** @param {number} own @param {number} length @param {Uint8Array} bytes @param {number} at */
  areSame(own, length, bytes, at) {
    for (let byte = 0; byte < length; byte++) {
      if (this.stream.bytes[own + byte] !== bytes[at + byte]) {
        return false;
      }
    }
    return true;
  }
}

/**
 * Reports whether bytes are all ones.
 * @param {Uint8Array} bytes
 * @param {number} from
 * @param {number} to
 */
function areOnes(bytes, from, to) {
  for (let at = from; at < to; at++) {
    if (bytes[at] !== 255) {
      return false;
    }
  }
  return true;
}

/**
 * @param {Job} job
 * @param {Header} header
 */
export async function checkHarmonia(job, header) {
  if (!header.harmonia) {
    return;
  }
  const { offset, shape } = header.harmonia;
  const { wordBytes, valueBytes, strideBytes, nodeKeys } = shape;
  const lines = new LineReader(job.pages, header);
  const [keys, values, counts, children] = [0, 1, 2, 3].map(() => new Stream(job.pages));
  for (const [depth, level] of shape.levels.entries()) {
    const isLeaf = depth + 1 === shape.levels.length;
    const below = isLeaf ? shape.nodes : shape.levels[depth + 1].first;
    await job.each(
      0,
      level.nodes,
      (number) => {
        const node = level.first + number;
        const own = harmoniaKeys(shape, depth, number);
        const at = keys.at(offset + node * strideBytes, strideBytes);
        let isGood = areOnes(keys.bytes, at + own * wordBytes, at + strideBytes);
        for (let slot = 0; slot < own; slot++) {
          const rank = isLeaf
            ? number * nodeKeys + slot
            : harmoniaLastRank(shape, depth + 1, number * (nodeKeys + 1) + slot);
          isGood = isGood && lines.isWord(rank, keys.bytes, at + slot * wordBytes);
        }
        if (!isGood) {
          const text = isLeaf
            ? 'a leaf must hold the keys of its ranks'
            : 'a key of an inner node must be the last one under the child to its left';
          job.rule('harmonia', 'HARM', offset + node * strideBytes, strideBytes, `level ${depth}`, 'other keys', text);
        } else if (isLeaf && valueBytes > 0) {
          leafValues(job, header, values, lines, number, own);
        }
        const count = counts.number(offset + shape.countsAt + node, 1);
        if (count !== own) {
          const text = 'counts must follow from the parameters';
          job.rule('harmonia', 'HARM', offset + shape.countsAt + node, 1, own, count, text);
        }
        const place = offset + shape.childrenAt + 4 * node;
        if (!isLeaf) {
          const child = below + number * (nodeKeys + 1);
          const found = children.number(place, 4);
          if (found !== child) {
            job.rule('harmonia', 'HARM', place, 4, child, found, 'children must follow from the parameters');
          }
        }
      },
      { bytes: level.nodes * strideBytes },
    );
  }
  await job.once(() => {
    const place = offset + shape.childrenAt + 4 * shape.inner;
    const found = children.number(place, 4);
    if (found !== shape.nodes) {
      job.rule('harmonia', 'HARM', place, 4, shape.nodes, found, 'children must follow from the parameters');
    }
  });
  const leaves = shape.nodes - shape.inner;
  const gaps = [
    [shape.nodes * strideBytes, shape.countsAt],
    [shape.countsAt + shape.nodes, shape.childrenAt],
    [shape.childrenAt + 4 * (shape.inner + 1), shape.valuesAt],
    [shape.valuesAt + leaves * shape.fanout * valueBytes, shape.bytes],
  ];
  for (const [from, to] of gaps) {
    await job.zeros('HARM', offset + from, offset + to, 'harmonia', 'padding must follow from the parameters');
  }
}

/**
 * @param {Job} job
 * @param {Header} header
 * @param {Stream} values
 * @param {LineReader} lines
 * @param {number} leaf
 * @param {number} own
 */
function leafValues(job, header, values, lines, leaf, own) {
  const { offset, shape } = /** @type {import('../header.js').Placed<import('../shape.js').HarmoniaShape>} */ (
    header.harmonia
  );
  const stride = shape.fanout * shape.valueBytes;
  const start = offset + shape.valuesAt + leaf * stride;
  const at = values.at(start, stride);
  let isGood = firstNonZero(values.bytes, at + own * shape.valueBytes, at + stride) < 0;
  for (let slot = 0; slot < own; slot++) {
    isGood = isGood && lines.isValue(leaf * shape.nodeKeys + slot, values.bytes, at + slot * shape.valueBytes);
  }
  if (!isGood) {
    job.rule(
      'harmonia',
      'HARM',
      start,
      stride,
      `leaf ${leaf}`,
      'other values',
      'a leaf must have the values of its ranks',
    );
  }
}

/**
 * @param {Job} job
 * @param {Header} header
 */
export async function checkBtree(job, header) {
  if (!header.btree) {
    return;
  }
  const { offset, shape } = header.btree;
  const { wordBytes, valueBytes, slots } = shape;
  const lines = new LineReader(job.pages, header);
  const [nodes, keys, values] = [0, 1, 2].map(() => new Stream(job.pages));
  for (const [depth, level] of shape.levels.entries()) {
    const isLeaf = depth + 1 === shape.levels.length;
    await job.each(
      0,
      level.nodes,
      (number) => {
        const node = level.first + number;
        const [from, to] = btreeItems(shape, depth, number);
        const count = to - from - (isLeaf ? 0 : 1);
        const first = isLeaf ? from : level.first + level.nodes + from;
        const place = nodes.at(offset + 16 * node, 16);
        const { view } = nodes;
        const found = [
          view.getUint32(place, true) + view.getUint16(place + 8, true) * 2 ** 32,
          view.getUint32(place + 4, true) + view.getUint16(place + 10, true) * 2 ** 32,
          view.getUint32(place + 12, true),
        ];
        const expected = [node * slots, first, isLeaf ? count + 2 ** 31 : count];
        if (expected.some((one, at) => one !== found[at])) {
          const text = 'metadata of a node must follow from the parameters';
          job.rule('btree', 'BTRE', offset + 16 * node, 16, expected, found, text);
        }
        const start = offset + shape.keysAt + node * slots * wordBytes;
        const at = keys.at(start, slots * wordBytes);
        let isGood = areOnes(keys.bytes, at + count * wordBytes, at + slots * wordBytes);
        for (let slot = 0; slot < count; slot++) {
          const rank = isLeaf ? from + slot : btreeLastRank(shape, depth, from + slot);
          isGood = isGood && lines.isWord(rank, keys.bytes, at + slot * wordBytes);
        }
        if (!isGood) {
          job.rule(
            'btree',
            'BTRE',
            start,
            slots * wordBytes,
            `node ${node}`,
            'other keys',
            'a node must hold its keys',
          );
        }
        for (let rank = from; isLeaf && valueBytes > 0 && rank < to; rank++) {
          const own = offset + shape.valuesAt + rank * valueBytes;
          if (!lines.isValue(rank, values.slice(own, valueBytes), 0)) {
            job.rule('btree', 'BTRE', own, valueBytes, `rank ${rank}`, 'another value', 'a rank must have its value');
          }
        }
      },
      { bytes: level.nodes * slots * wordBytes },
    );
  }
  const gaps = [
    [16 * shape.nodes, shape.keysAt],
    [shape.keysAt + shape.nodes * slots * wordBytes, shape.valuesAt],
    [shape.valuesAt + shape.tuples * valueBytes, shape.bytes],
  ];
  for (const [from, to] of gaps) {
    await job.zeros('BTRE', offset + from, offset + to);
  }
}

/** Rank of a slot as a text. @param {number} rank @param {number} tuples */
const slotText = (rank, tuples) => (rank >= 0 && rank < tuples ? `the key of rank ${rank}` : 'free');

/**
 * @param {Job} job
 * @param {Header} header
 */
export async function checkFast(job, header) {
  if (!header.fast) {
    return;
  }
  const { offset, shape } = header.fast;
  // The keys of high nodes are far from each other.
  const pages = new Pages(job.source, 4096);
  const lines = new LineReader(pages, header, 4);
  if (shape.form !== 0) {
    await new PagedCheck(job, header, pages, lines).run();
    return;
  }
  const { tree } = shape;
  const { keyBytes } = tree.geometry;
  const slots = new Stream(pages, 64);
  await job.each(
    0,
    tree.slots,
    (slot) => {
      const at = slots.at(offset + slot * keyBytes, keyBytes);
      const rank = indexOf(tree, slot);
      const has = rank >= 0 && rank < header.tuples;
      if (has ? !lines.isWord(rank, slots.bytes, at) : !areOnes(slots.bytes, at, at + keyBytes)) {
        const found = wordAt(slots.view, at, keyBytes).toString(16);
        const expected = slotText(rank, header.tuples);
        job.rule('classic', 'FAST', offset + slot * keyBytes, keyBytes, expected, found, 'a slot must hold its key');
      }
    },
    { pages, bytes: shape.bytes },
  );
  await job.zeros('FAST', offset + tree.slots * keyBytes, offset + shape.bytes);
}

/** Checks of a compressed tree: the records in order, since places follow from widths, and the words of each page. */
class PagedCheck {
  /**
   * @param {Job} job
   * @param {Header} header
   * @param {Pages} pages
   * @param {LineReader} lines
   */
  constructor(job, header, pages, lines) {
    const { offset, shape } = /** @type {import('../header.js').Placed<import('../classic.js').FastShape>} */ (
      header.fast
    );
    this.job = job;
    this.header = header;
    this.offset = offset;
    this.shape = shape;
    this.pages = pages;
    this.lines = lines;
    this.records = new Stream(pages, 16);
    this.words = new Stream(pages, 16);
    this.end = shape.pagesAt;
  }

  /** @param {number} at @param {number} length @param {unknown} expected @param {unknown} found @param {string} text */
  wrong(at, length, expected, found, text) {
    this.job.rule('classic', 'FAST', this.offset + at, length, expected, found, text);
    return null;
  }

  async run() {
    const { job, shape, offset } = this;
    await job.zeros('FAST', offset + shape.pages * shape.recordBytes, offset + shape.pagesAt);
    for (const [level, pages] of pagedLevels(shape).entries()) {
      for (let page = 0; page <= pages.last; page++) {
        /** @type {{record: import('../classic.js').PageRecord, bytes: number} | null} */
        let placed = null;
        await job.each(
          0,
          1,
          () => {
            placed = this.placed(level, page);
          },
          { pages: this.pages },
        );
        const found = /** @type {{record: import('../classic.js').PageRecord, bytes: number} | null} */ (placed);
        if (!found) {
          return;
        }
        await job.zeros('FAST', offset + this.end, offset + found.record.place);
        this.end = found.record.place + found.bytes;
        await this.checkPage(level, page, found.record);
      }
    }
    if (shape.bytes !== pagedBytes(this.end)) {
      this.wrong(0, shape.bytes, pagedBytes(this.end), shape.bytes, 'length must be that of the pages');
      return;
    }
    await job.zeros('FAST', offset + this.end, offset + shape.bytes);
  }

  /**
   * Returns the record of a page and the page's bytes, if the page is where it must be.
   * @param {number} level
   * @param {number} page
   */
  placed(level, page) {
    const { shape } = this;
    const { keyBytes } = shape.geometry;
    const at = (shape.records[level] + page) * shape.recordBytes;
    const own = this.records.at(this.offset + at, shape.recordBytes);
    const record = pageRecord(this.records.view, own, keyBytes);
    const text = 'a page must have its record';
    const tree = shape.narrow.get(record.width);
    if (!tree) {
      return this.wrong(at, shape.recordBytes, `words of 2 to ${keyBytes} bytes`, record.width, text);
    }
    const most = shape.form === 1 ? 0 : 2 * record.width;
    if (popcount(record.kept) > most) {
      return this.wrong(at, shape.recordBytes, `at most ${most} nibbles`, record.kept.toString(16), text);
    }
    const part = page === tree.pages[level].last ? 1 : 0;
    const bytes = tree.pages[level].slots[part] * record.width;
    const place = placeOfPage(shape, bytes, this.end);
    if (record.place !== place) {
      return this.wrong(at, shape.recordBytes, `place ${place}`, record.place, text);
    }
    if (keyBytes === 16 && firstNonZero(this.records.bytes, own + 21, own + 24) >= 0) {
      return this.wrong(at, shape.recordBytes, 'zeros in reserved bytes', 'others', text);
    }
    if (pagedBytes(place + bytes) > shape.bytes) {
      return this.wrong(
        at,
        shape.recordBytes,
        `at most ${shape.bytes}`,
        place + bytes,
        'pages must end inside the section',
      );
    }
    return { record, bytes };
  }

  /** @param {number} level @param {number} page @param {import('../classic.js').PageRecord} record */
  async checkPage(level, page, record) {
    const { job, header, shape, offset } = this;
    const tree = /** @type {import('../classic.js').Tree} */ (shape.narrow.get(record.width));
    const own = tree.pages[level];
    const lowest = page * 2 ** (own.levels + own.below) + 2 ** own.below - 1;
    const { width } = record;
    const free = (1n << BigInt(8 * width)) - 1n;
    const slots = own.slots[page === own.last ? 1 : 0];
    // The first step is for the record.
    await job.each(
      -1,
      slots,
      (slot) => {
        if (slot < 0) {
          const base = lowest < header.tuples ? this.lines.word(lowest) : 0n;
          if (base !== record.base) {
            const at = (shape.records[level] + page) * shape.recordBytes;
            const [expected, found] = [base.toString(16), record.base.toString(16)];
            this.wrong(at, shape.recordBytes, expected, found, 'a record must name the smallest key of its page');
          }
          return;
        }
        const at = record.place + slot * width;
        const place = this.words.at(offset + at, width);
        const found = wordAt(this.words.view, place, width);
        const rank = indexInPage(tree, own, page, slot);
        const has = rank >= 0 && rank < header.tuples;
        const expected = has ? wordInPage(record, this.lines.word(rank)) : free;
        if (expected !== found) {
          const text = 'a slot must hold the word of its key';
          this.wrong(at, width, expected?.toString(16) ?? 'a key of the page', found.toString(16), text);
        }
      },
      { pages: this.pages, bytes: slots * width },
    );
  }
}

/**
 * @param {Job} job
 * @param {Header} header
 */
export async function checkPacked(job, header) {
  if (!header.packed) {
    return;
  }
  const { offset, shape } = header.packed;
  const records = new Stream(job.pages);
  await job.zeros('PACK', offset + 16 * shape.pages, offset + shape.dataAt);
  const guard = offset + shape.dataAt + shape.dataBytes;
  await job.zeros('PACK', guard, guard + 64);
  let place = 0;
  let isOver = false;
  /** @param {number} page */
  const recordOf = (page) => {
    const at = records.at(offset + 16 * page, 16);
    const low = records.view.getUint32(at + 8, true);
    const high = records.view.getUint32(at + 12, true);
    return { place: low + (high & 0xffffff) * 2 ** 32, width: high >>> 24, base: records.view.getBigUint64(at, true) };
  };
  await job.each(0, shape.pages, (page) => {
    const record = recordOf(page);
    if (!isOver && (record.place !== place || record.width > 64)) {
      isOver = true;
      const [from, found] = [Math.max(page - 1, 0), `place ${record.place}, width ${record.width}`];
      const text = 'pages must follow each other';
      job.rule('packed', 'PACK', offset + 16 * from, 16 * (page + 1 - from), `place ${place}`, found, text);
    }
    place += 128 * record.width;
  });
  if (isOver) {
    return;
  }
  if (place !== shape.dataBytes) {
    job.rule('packed', 'PACK', offset, shape.dataAt, shape.dataBytes, place, 'pages must fill the section');
    return;
  }
  const lines = new LineReader(job.pages, header);
  const data = new Stream(job.pages);
  await job.each(
    0,
    shape.pages,
    (page) => {
      const record = recordOf(page);
      const at = offset + shape.dataAt + record.place;
      const found = data.slice(at, 128 * record.width);
      const expected = packedPage(lines, page, header.tuples);
      const keys = `keys ${1024 * page} and on`;
      if (expected && (expected.base !== record.base || expected.width !== record.width)) {
        job.rule('packed', 'PACK', offset + 16 * page, 16, keys, 'others', 'a record must be that of its keys');
      } else if (!expected || !areEqual(expected.bytes, found)) {
        job.rule('packed', 'PACK', at, 128 * record.width, keys, 'others', 'a page must hold the keys of its tuples');
      }
    },
    { bytes: shape.dataBytes },
  );
}

/**
 * The page that follows from the tuple lines; null if their keys do not ascend.
 * @param {LineReader} lines
 * @param {number} page
 * @param {number} tuples
 */
function packedPage(lines, page, tuples) {
  const { lineTuples, wordBytes } = lines.header;
  const first = 1024 * page;
  const count = Math.min(tuples - first, 1024);
  const [lows, highs] = [new Uint32Array(count), new Uint32Array(count)];
  for (let at = 0; at < count; at++) {
    const place = lines.line(first + at) + ((first + at) % lineTuples) * wordBytes;
    lows[at] = lines.stream.view.getUint32(place, true);
    highs[at] = wordBytes === 8 ? lines.stream.view.getUint32(place + 4, true) : 0;
    if (at > 0 && (highs[at] < highs[at - 1] || (highs[at] === highs[at - 1] && lows[at] < lows[at - 1]))) {
      return null;
    }
  }
  const [baseLow, baseHigh] = [lows[0], highs[0]];
  for (let at = 0; at < count; at++) {
    const isBorrowed = lows[at] < baseLow ? 1 : 0;
    highs[at] = highs[at] - baseHigh - isBorrowed;
    lows[at] -= baseLow;
  }
  const [spanLow, spanHigh] = [lows[count - 1], highs[count - 1]];
  const width = spanHigh > 0 ? 64 - Math.clz32(spanHigh) : 32 - Math.clz32(spanLow);
  const parts = new Uint32Array(32 * width + 2);
  for (let at = 0; at < count; at++) {
    put(parts, at * width, lows[at], Math.min(width, 32));
    put(parts, at * width + 32, highs[at], Math.max(width - 32, 0));
  }
  const base = (BigInt(baseHigh) << 32n) | BigInt(baseLow);
  return { base, width, bytes: new Uint8Array(parts.buffer, 0, 128 * width) };
}

/**
 * Puts bits into numbers of 32 bits, the lowest first.
 * @param {Uint32Array} parts
 * @param {number} at
 * @param {number} value
 * @param {number} bits
 */
function put(parts, at, value, bits) {
  if (bits === 0) {
    return;
  }
  const [part, shift] = [at >>> 5, at & 31];
  parts[part] |= value << shift;
  if (shift + bits > 32) {
    parts[part + 1] |= value >>> (32 - shift);
  }
}
