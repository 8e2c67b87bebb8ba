/**
 * Checks of the trees whose nodes have many keys, HARM and BTRE, against the tuple lines.
 */
import { btreeItems, btreeLastRank, harmoniaKeys, harmoniaLastRank } from '../shape.js';
import { wordAt } from '../search.js';
import { isSame } from './numbers.js';
import { Pages, Stream, areOnes, firstNonZero } from './reader.js';

/**
 * @typedef {import('./reader.js').Job} Job
 * @typedef {import('../header.js').Header} Header
 */

/** Words and values of the tuple lines by rank. */
export class LineReader {
  /**
   * @param {import('./reader.js').Pages} pages
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
    return isSame(this.stream.bytes, own, bytes, at, wordBytes);
  }

  /**
   * Reports whether words of consecutive ranks stand at a place, one after the other.
   * @param {number} rank
   * @param {number} count
   * @param {Uint8Array} bytes
   * @param {number} at
   */
  areWords(rank, count, bytes, at) {
    return this.areThere(rank, count, 0, this.header.wordBytes, bytes, at);
  }

  /**
   * The same of values.
   * @param {number} rank
   * @param {number} count
   * @param {Uint8Array} bytes
   * @param {number} at
   */
  areValues(rank, count, bytes, at) {
    return this.areThere(rank, count, this.header.valuesAt, this.header.valueBytes, bytes, at);
  }

  /**
   * @param {number} rank
   * @param {number} count
   * @param {number} start of words or values in a line
   * @param {number} size
   * @param {Uint8Array} bytes
   * @param {number} at
   */
  areThere(rank, count, start, size, bytes, at) {
    const { line, lineTuples } = this.header;
    let number = Math.floor(rank / lineTuples);
    let slot = rank - number * lineTuples;
    let to = at;
    for (let left = count; left > 0;) {
      const own = this.stream.at(line.offset + 64 * number, 64) + start + slot * size;
      const part = Math.min(left, lineTuples - slot);
      if (!isSame(this.stream.bytes, own, bytes, to, part * size)) {
        return false;
      }
      left -= part;
      to += part * size;
      number += 1;
      slot = 0;
    }
    return true;
  }
}

/**
 * Tuple lines for ranks that are far from each other.
 * @param {Job} job
 * @param {Header} header
 */
export const farLines = (job, header) => new LineReader(new Pages(job.source, 4096, job.pages.bytes / 4), header, 1);

/**
 * Calls with each level that has nodes among some, which are counted from the root on, and with the numbers of these.
 * @template {{first: number, nodes: number}} Level
 * @param {Level[]} levels
 * @param {number} from
 * @param {number} to
 * @param {(depth: number, level: Level, from: number, to: number) => Promise<void>} take
 */
async function eachLevel(levels, from, to, take) {
  for (const [depth, level] of levels.entries()) {
    const first = Math.max(from - level.first, 0);
    const end = Math.min(to - level.first, level.nodes);
    if (first < end) {
      await take(depth, level, first, end);
    }
  }
}

/**
 * Checks some nodes of HARM.
 * @param {Job} job
 * @param {Header} header
 * @param {number} begin
 * @param {number} end
 */
export async function checkHarmonia(job, header, begin, end) {
  if (!header.harmonia) {
    return;
  }
  const { offset, shape } = header.harmonia;
  const { wordBytes, valueBytes, strideBytes, nodeKeys } = shape;
  const lines = new LineReader(job.pages, header);
  const far = farLines(job, header);
  const [keys, values, counts, children] = [0, 1, 2, 3].map(() => new Stream(job.pages));
  await eachLevel(shape.levels, begin, end, async (depth, level, from, to) => {
    const isLeaf = depth + 1 === shape.levels.length;
    const below = isLeaf ? shape.nodes : shape.levels[depth + 1].first;
    await job.each(
      from,
      to,
      (number) => {
        const node = level.first + number;
        const own = harmoniaKeys(shape, depth, number);
        const at = keys.at(offset + node * strideBytes, strideBytes);
        let isGood = areOnes(keys.bytes, at + own * wordBytes, at + strideBytes);
        isGood &&= !isLeaf || lines.areWords(number * nodeKeys, own, keys.bytes, at);
        for (let slot = 0; !isLeaf && slot < own; slot++) {
          const rank = harmoniaLastRank(shape, depth + 1, number * (nodeKeys + 1) + slot);
          isGood &&= far.isWord(rank, keys.bytes, at + slot * wordBytes);
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
      { weight: strideBytes },
    );
  });
  if (end < shape.nodes) {
    return;
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
  const isPadded = firstNonZero(values.bytes, at + own * shape.valueBytes, at + stride) < 0;
  if (!isPadded || !lines.areValues(leaf * shape.nodeKeys, own, values.bytes, at)) {
    const text = 'a leaf must have the values of its ranks';
    job.rule('harmonia', 'HARM', start, stride, `leaf ${leaf}`, 'other values', text);
  }
}

/**
 * Checks some nodes of BTRE.
 * @param {Job} job
 * @param {Header} header
 * @param {number} begin
 * @param {number} end
 */
export async function checkBtree(job, header, begin, end) {
  if (!header.btree) {
    return;
  }
  const { offset, shape } = header.btree;
  const { wordBytes, valueBytes, slots } = shape;
  const lines = new LineReader(job.pages, header);
  const far = farLines(job, header);
  const [nodes, keys, values] = [0, 1, 2].map(() => new Stream(job.pages));
  await eachLevel(shape.levels, begin, end, async (depth, level, low, high) => {
    const isLeaf = depth + 1 === shape.levels.length;
    await job.each(
      low,
      high,
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
        isGood &&= !isLeaf || lines.areWords(from, count, keys.bytes, at);
        for (let slot = 0; !isLeaf && slot < count; slot++) {
          const rank = btreeLastRank(shape, depth, from + slot);
          isGood &&= far.isWord(rank, keys.bytes, at + slot * wordBytes);
        }
        if (!isGood) {
          const text = 'a node must hold its keys';
          job.rule('btree', 'BTRE', start, slots * wordBytes, `node ${node}`, 'other keys', text);
        }
        if (!isLeaf || valueBytes === 0) {
          return;
        }
        const held = values.at(offset + shape.valuesAt + from * valueBytes, (to - from) * valueBytes);
        if (lines.areValues(from, to - from, values.bytes, held)) {
          return;
        }
        for (let rank = from; rank < to; rank++) {
          const own = offset + shape.valuesAt + rank * valueBytes;
          if (!lines.areValues(rank, 1, values.slice(own, valueBytes), 0)) {
            job.rule('btree', 'BTRE', own, valueBytes, `rank ${rank}`, 'another value', 'a rank must have its value');
          }
        }
      },
      { weight: slots * wordBytes },
    );
  });
  if (end < shape.nodes) {
    return;
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
