/**
 * Shapes of sections: pure arithmetic from the parameters of an entry to the places of all parts. Every function
 * returns null if the parameters do not agree with each other, with the number of elements or with the length.
 */

/**
 * @param {number} value
 * @param {number} align
 */
export const alignUp = (value, align) => Math.ceil(value / align) * align;

/** Reads fields of parameters. */
export class Parameters {
  /** @param {Uint8Array} bytes the 64 bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }
  /** @param {number} at */
  u32(at) {
    return this.view.getUint32(at, true);
  }
  /** @param {number} at */
  u64(at) {
    return Number(this.view.getBigUint64(at, true));
  }
  /** @param {number} at */
  big(at) {
    return this.view.getBigUint64(at, true);
  }
  /**
   * Reports whether all bytes from one place on are zero.
   * @param {number} from
   * @param {number} [to]
   */
  areZero(from, to = 64) {
    return this.bytes.subarray(from, to).every((byte) => byte === 0);
  }
}

/** Encodings of the levels of a spine: bytes of a code, and bytes at the end of a line that hold no code. */
export const ENCODINGS = ['raw', 'delta16', 'delta32', 'delta8'];
const CODE_BYTES = [0, 2, 4, 1];

/**
 * Bytes of a slot.
 * @param {number} encoding
 * @param {number} wordBytes
 */
export const slotBytes = (encoding, wordBytes) => CODE_BYTES[encoding] || wordBytes;

/**
 * Slots of a line.
 * @param {number} encoding
 * @param {number} wordBytes
 */
export function slotsOf(encoding, wordBytes) {
  return encoding === 0 ? 64 / wordBytes : Math.floor((62 - wordBytes) / CODE_BYTES[encoding]);
}

/**
 * @typedef {{encoding: number, fanout: number, lines: number, children: number, offset: number}} Level
 * @typedef {{levels: Level[], childLines: number, bytes: number, inexactLines: bigint}} SpineShape
 */

/**
 * Returns the shape of a spine above so many tuple lines.
 * @param {Parameters} stored
 * @param {number} lines
 * @param {number} wordBytes
 * @param {number} elements
 * @param {number} length
 * @returns {SpineShape | null}
 */
export function spineShape(stored, lines, wordBytes, elements, length) {
  const count = stored.u32(8);
  const childLines = stored.u32(12);
  if (count > 24 || childLines < 1 || childLines > 128 || (childLines & (childLines - 1)) !== 0) {
    return null;
  }
  if (stored.u32(0) !== 64 || stored.u32(4) !== wordBytes || !stored.areZero(24 + count)) {
    return null;
  }
  /** @type {Level[]} */
  const levels = [];
  let children = Math.ceil(lines / childLines);
  for (const encoding of stored.bytes.subarray(24, 24 + count)) {
    if (encoding > 3 || children <= 1) {
      return null;
    }
    const fanout = slotsOf(encoding, wordBytes) + 1;
    const own = Math.ceil(children / fanout);
    levels.push({ encoding, fanout, lines: own, children, offset: 0 });
    children = own;
  }
  if (children > 1) {
    return null;
  }
  let bytes = 0;
  let all = 0;
  for (const level of [...levels].reverse()) {
    level.offset = bytes;
    bytes += alignUp(64 * level.lines, 128);
    all += level.lines;
  }
  if (bytes !== length || all !== elements) {
    return null;
  }
  return { levels, childLines, bytes, inexactLines: stored.big(16) };
}

/**
 * @typedef {{elementBytes: number, offsetBytes: number, elements: number, dataBytes: number, dataAt: number}}
 * ColumnShape
 */

/**
 * @param {Parameters} stored
 * @param {number} elements
 * @param {number} length
 * @returns {ColumnShape | null}
 */
export function columnShape(stored, elements, length) {
  const [elementBytes, offsetBytes] = [stored.u32(0), stored.u32(4)];
  if (!stored.areZero(8)) {
    return null;
  }
  if (elementBytes > 0 && offsetBytes === 0) {
    const dataBytes = elements * elementBytes;
    return dataBytes + 64 === length ? { elementBytes, offsetBytes, elements, dataBytes, dataAt: 0 } : null;
  }
  if (elementBytes !== 0 || (offsetBytes !== 4 && offsetBytes !== 8)) {
    return null;
  }
  const dataAt = alignUp((elements + 1) * offsetBytes, 128);
  const dataBytes = length - dataAt - 64;
  if (dataBytes < 0 || (offsetBytes === 4 && dataBytes > 0x7fffffff)) {
    return null;
  }
  return { elementBytes, offsetBytes, elements, dataBytes, dataAt };
}

/** Bytes of a code for so many values. @param {number} values */
export const codeBytes = (values) => (values <= 256 ? 1 : values <= 65536 ? 2 : 4);

/**
 * Reports whether codes go with the values.
 * @param {ColumnShape} codes
 * @param {ColumnShape} values
 * @param {number} tuples
 */
export function codesAgree(codes, values, tuples) {
  return (
    codes.elements === tuples &&
    codes.elementBytes === codeBytes(values.elements) &&
    values.elements > 0 === tuples > 0 &&
    values.elements <= Math.min(tuples, 1 << 24) &&
    values.dataBytes <= 1 << 28
  );
}

/** Keys of a page of TEXT, bytes of its table of symbols. */
export const TEXT_PAGE_KEYS = 16;
export const SYMBOLS_BYTES = 256 + 256 * 8;

/**
 * @typedef {{keys: number, pages: number, placeBytes: number, pagesAt: number, dataBytes: number}} TextShape
 */

/**
 * @param {Parameters} stored
 * @param {number} keys
 * @param {number} length
 * @returns {TextShape | null}
 */
export function textShape(stored, keys, length) {
  const placeBytes = stored.u32(4);
  if (stored.u32(0) !== TEXT_PAGE_KEYS || (placeBytes !== 4 && placeBytes !== 8) || !stored.areZero(8)) {
    return null;
  }
  const pages = Math.ceil(keys / TEXT_PAGE_KEYS);
  const pagesAt = alignUp(SYMBOLS_BYTES + (pages + 1) * placeBytes, 128);
  const dataBytes = length - pagesAt - 64;
  if (dataBytes < 0 || (dataBytes < 2 ** 32 ? 4 : 8) !== placeBytes) {
    return null;
  }
  return { keys, pages, placeBytes, pagesAt, dataBytes };
}

/**
 * @param {Parameters} stored
 * @param {number} nodes
 * @param {number} length
 * @returns {{nodes: number, levels: number} | null}
 */
export function trieShape(stored, nodes, length) {
  const levels = stored.u32(4);
  const fits = nodes >= 1 && nodes < 2 ** 31 && levels >= 1 && levels <= 64;
  const agree = stored.u32(0) === 128 && stored.areZero(8) && nodes * 128 === length;
  return fits && agree ? { nodes, levels } : null;
}

/**
 * @typedef {{keys: number, pages: number, dataAt: number, dataBytes: number}} PackShape
 */

/**
 * @param {Parameters} stored
 * @param {number} keys
 * @param {number} length
 * @param {number} wordBytes
 * @returns {PackShape | null}
 */
export function packShape(stored, keys, length, wordBytes) {
  if (stored.u32(0) !== wordBytes || (wordBytes !== 4 && wordBytes !== 8)) {
    return null;
  }
  if (stored.u32(4) !== 1024 || !stored.areZero(8)) {
    return null;
  }
  const pages = Math.ceil(keys / 1024);
  const dataAt = alignUp(16 * pages, 128);
  const dataBytes = length - dataAt - 64;
  return dataBytes < 0 ? null : { keys, pages, dataAt, dataBytes };
}

/**
 * @typedef {{base: bigint, first: number, form: number}} Segment
 * @typedef {{units: number, segments: number, unitsAt: number, bytes: number, root: Segment, steps: number,
 *   usualSteps: number}} GridShape
 */

/** Kind of the parts of a segment: 0 segments, 1 units, 2 marks. @param {Segment} segment */
export const kindOf = (segment) => (segment.form >>> 24) & 3;
/** @param {Segment} segment */
export const numberOf = (segment) => segment.form & 0xffffff;
/** @param {Segment} segment */
export const shiftOf = (segment) => segment.form >>> 26;

/**
 * @param {Parameters} stored
 * @param {number} units
 * @param {number} length
 * @param {number} wordBytes
 * @returns {GridShape | null}
 */
export function gridShape(stored, units, length, wordBytes) {
  const [steps, usualSteps, segments] = [stored.u32(4), stored.u32(8), stored.u64(16)];
  const root = { base: stored.big(24), first: stored.u32(32), form: stored.u32(36) };
  if (stored.u32(0) !== wordBytes || (wordBytes !== 4 && wordBytes !== 8)) {
    return null;
  }
  if (stored.u32(12) !== 0 || !stored.areZero(40)) {
    return null;
  }
  if (wordBytes === 4 && root.base >> 32n !== 0n) {
    return null;
  }
  if (kindOf(root) === 3 || segments >= 2 ** 32 || units < 1 || units >= 2 ** 32) {
    return null;
  }
  const isOne = kindOf(root) !== 0;
  if (steps > 8 || usualSteps > steps) {
    return null;
  }
  if (isOne !== (steps === 0) || isOne !== (segments === 0) || isOne !== (usualSteps === 0)) {
    return null;
  }
  const unitsAt = alignUp(16 * segments, 128);
  const bytes = unitsAt + 8 * units + 64;
  return bytes === length ? { units, segments, unitsAt, bytes, root, steps, usualSteps } : null;
}

/**
 * @typedef {{first: number, nodes: number, leaves: number}} HarmoniaLevel
 * @typedef {{tuples: number, fanout: number, nodeKeys: number, wordBytes: number, valueBytes: number,
 *   levels: HarmoniaLevel[], nodes: number, inner: number, strideBytes: number, countsAt: number,
 *   childrenAt: number, valuesAt: number, bytes: number}} HarmoniaShape
 */

/**
 * @param {Parameters} stored
 * @param {number} tuples
 * @param {number} length
 * @param {number} wordBytes
 * @param {number} valueBytes
 * @returns {HarmoniaShape | null}
 */
export function harmoniaShape(stored, tuples, length, wordBytes, valueBytes) {
  const [strideBytes, nodeKeys, fanout] = [stored.u32(0), stored.u32(12), stored.u32(16)];
  if (stored.u32(4) !== wordBytes || stored.u32(8) !== valueBytes || !stored.areZero(24)) {
    return null;
  }
  if (fanout < 8 || fanout > 128 || nodeKeys < 1 || nodeKeys >= fanout) {
    return null;
  }
  if (strideBytes !== alignUp(fanout * wordBytes, 64)) {
    return null;
  }
  /** @type {HarmoniaLevel[]} */
  const levels = [];
  let count = Math.ceil(tuples / nodeKeys);
  let leaves = 1;
  while (count > 0) {
    levels.push({ first: 0, nodes: count, leaves });
    if (count === 1) {
      break;
    }
    leaves *= nodeKeys + 1;
    count = Math.ceil(count / (nodeKeys + 1));
  }
  levels.reverse();
  let nodes = 0;
  for (const level of levels) {
    level.first = nodes;
    nodes += level.nodes;
  }
  if (levels.length > 24 || levels.length !== stored.u32(20) || nodes >= 2 ** 32 - 1) {
    return null;
  }
  const bottom = levels.length > 0 ? levels[levels.length - 1].nodes : 0;
  const inner = nodes - bottom;
  const countsAt = alignUp(nodes * strideBytes, 128);
  const childrenAt = alignUp(countsAt + nodes, 128);
  const valuesAt = alignUp(childrenAt + 4 * (inner + 1), 128);
  const bytes = alignUp(valuesAt + bottom * fanout * valueBytes, 128) + 64;
  if (bytes !== length) {
    return null;
  }
  const parts = { levels, nodes, inner, strideBytes, countsAt, childrenAt, valuesAt, bytes };
  return { tuples, fanout, nodeKeys, wordBytes, valueBytes, ...parts };
}

/**
 * Number of keys of a node.
 * @param {HarmoniaShape} shape
 * @param {number} depth
 * @param {number} at number in its level
 */
export function harmoniaKeys(shape, depth, at) {
  const level = shape.levels[depth];
  if (at + 1 < level.nodes) {
    return shape.nodeKeys;
  }
  const below = shape.levels[depth + 1];
  return below ? below.nodes - at * (shape.nodeKeys + 1) - 1 : shape.tuples - at * shape.nodeKeys;
}

/**
 * Rank of the last tuple under a node.
 * @param {HarmoniaShape} shape
 * @param {number} depth
 * @param {number} at
 */
export function harmoniaLastRank(shape, depth, at) {
  return Math.min((at + 1) * shape.levels[depth].leaves * shape.nodeKeys, shape.tuples) - 1;
}

/**
 * @typedef {{first: number, nodes: number, items: number, last: number}} BtreeLevel
 * @typedef {{order: number, tuples: number, wordBytes: number, valueBytes: number, levels: BtreeLevel[],
 *   nodes: number, slots: number, keysAt: number, valuesAt: number, bytes: number}} BtreeShape
 */

/**
 * @param {Parameters} stored
 * @param {number} tuples
 * @param {number} length
 * @param {number} wordBytes
 * @param {number} valueBytes
 * @returns {BtreeShape | null}
 */
export function btreeShape(stored, tuples, length, wordBytes, valueBytes) {
  const order = stored.u32(0);
  if (stored.u32(4) !== wordBytes || stored.u32(8) !== valueBytes || !stored.areZero(16)) {
    return null;
  }
  if (order < 4 || order > 128 || tuples > 2 ** 46) {
    return null;
  }
  /** @type {BtreeLevel[]} */
  const levels = [];
  let [items, full, half] = [tuples, order - 1, Math.floor(order / 2)];
  while (items > 0) {
    const nodes = Math.ceil(items / full);
    const rest = items - (nodes - 1) * full;
    const last = rest < half && items > full ? Math.floor((full + rest) / 2) : rest;
    levels.push({ first: 0, nodes, items, last });
    if (nodes === 1) {
      break;
    }
    [items, full, half] = [nodes, order, Math.ceil(order / 2)];
  }
  levels.reverse();
  let nodes = 0;
  for (const level of levels) {
    level.first = nodes;
    nodes += level.nodes;
  }
  const slots = alignUp(order - 1, 4);
  const keysAt = alignUp(16 * nodes, 128);
  const valuesAt = alignUp(keysAt + nodes * slots * wordBytes, 128);
  const bytes = alignUp(valuesAt + tuples * valueBytes, 128) + 64;
  if (bytes !== length || levels.length !== stored.u32(12)) {
    return null;
  }
  return { order, tuples, wordBytes, valueBytes, levels, nodes, slots, keysAt, valuesAt, bytes };
}

/**
 * First item of a node, and the end of its items: keys of a leaf, children of another node.
 * @param {BtreeShape} shape
 * @param {number} depth
 * @param {number} node
 * @returns {[number, number]}
 */
export function btreeItems(shape, depth, node) {
  const level = shape.levels[depth];
  const full = depth + 1 === shape.levels.length ? shape.order - 1 : shape.order;
  /** @param {number} at */
  const start = (at) => (at + 1 < level.nodes ? at * full : at < level.nodes ? level.items - level.last : level.items);
  return [start(node), start(node + 1)];
}

/**
 * Rank of the last tuple under an item of a level.
 * @param {BtreeShape} shape
 * @param {number} depth
 * @param {number} item
 */
export function btreeLastRank(shape, depth, item) {
  let at = item;
  for (let below = depth + 1; below < shape.levels.length; below++) {
    at = btreeItems(shape, below, at)[1] - 1;
  }
  return at;
}
