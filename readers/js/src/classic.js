/**
 * FAST, the classic tree: the places of its pages, lines and keys, from the number of keys and the parameters.
 * All numbers are below 2^53.
 */
import { alignUp } from './shape.js';

const HUGE_BYTES = 2 ** 21;
export const FORMS = ['full', 'delta', 'partial', 'auto'];

/** Nodes of a complete tree. @param {number} levels */
const nodes = (levels) => 2 ** levels - 1;
/** @param {number} value @param {number} bits */
const right = (value, bits) => Math.floor(value / 2 ** bits);

/**
 * @typedef {{keys: number, keyBytes: number, dk: number, dl: number, dp: number, padded: boolean,
 *   aligned: boolean}} Geometry
 * @typedef {{above: number, levels: number, below: number, pitch: number, group: number, start: number[],
 *   last: number[]}} LineLevel
 * @typedef {{above: number, levels: number, below: number, last: number, start: number, slots: number[],
 *   unitPages: number, gapSlots: number, joined: boolean, lines: LineLevel[]}} PageLevel
 * @typedef {{geometry: Geometry, depth: number, gap: number, pages: PageLevel[], slots: number}} Tree
 */

/** Levels of a tree of so many keys. @param {number} keys */
export function treeLevels(keys) {
  let levels = 0;
  while (2 ** levels < keys) {
    levels += 1;
  }
  return levels;
}

/**
 * Lines of a group, as a power of two, and the slots of a group.
 * @param {Geometry} geometry
 * @param {number} levels
 */
function pitchOf(geometry, levels) {
  const keys = nodes(levels);
  if (!geometry.padded) {
    return { group: 0, pitch: keys };
  }
  const slots = 64 / geometry.keyBytes;
  if (keys > slots) {
    return { group: 0, pitch: alignUp(keys, slots) };
  }
  return { group: Math.floor(Math.log2(Math.floor(slots / keys))), pitch: slots };
}

/**
 * @param {Geometry} geometry
 * @param {number} depth levels of the tree
 * @param {number} gap the last gap
 * @param {number} above
 * @param {number} start
 * @param {boolean} join
 * @returns {PageLevel}
 */
function pageLevel(geometry, depth, gap, above, start, join) {
  const levels = Math.min(geometry.dp, depth - above);
  const joined = join && levels <= geometry.dl;
  const lastPage = right(gap, depth - above);
  /** @type {PageLevel} */
  const page = {
    above,
    levels,
    below: depth - above - levels,
    last: joined ? 0 : lastPage,
    start,
    slots: [0, 0],
    unitPages: 0,
    gapSlots: 0,
    joined,
    lines: [],
  };
  let inside = 0;
  while (inside < levels) {
    const own = Math.min(geometry.dl, levels - inside);
    const lastLine = right(gap, depth - above - inside);
    const last = joined ? [lastLine, lastLine] : [nodes(inside), lastLine - lastPage * 2 ** inside];
    const { group, pitch } = pitchOf(geometry, own);
    const line = { above: inside, levels: own, below: depth - above - inside - own, pitch, group, last };
    page.lines.push({ ...line, start: [...page.slots] });
    page.slots = page.slots.map((slots, part) => slots + Math.ceil((last[part] + 1) / 2 ** group) * pitch);
    inside += own;
  }
  if (geometry.aligned && !joined) {
    align(page, HUGE_BYTES / geometry.keyBytes);
  }
  return page;
}

/**
 * Slot of a page.
 * @param {PageLevel} level
 * @param {number} page
 */
function pageSlot(level, page) {
  const gaps = level.gapSlots === 0 ? 0 : Math.floor(page / level.unitPages) * level.gapSlots;
  return level.start + page * level.slots[0] + gaps;
}

/** @param {PageLevel} level */
const span = (level) => pageSlot(level, level.last) - level.start + level.slots[1];

/**
 * Moves pages so that none straddles a multiple of so many slots.
 * @param {PageLevel} level
 * @param {number} unit
 */
function align(level, unit) {
  const whole = level.slots[level.last === 0 ? 1 : 0];
  const next = alignUp(level.start, unit);
  if (level.start + span(level) <= next) {
    return;
  }
  level.start = next;
  if (level.last > 0 && span(level) > unit) {
    const pages = Math.max(Math.floor(unit / whole), 1);
    const gap = alignUp(pages * whole, unit) - pages * whole;
    level.unitPages = gap === 0 ? 0 : pages;
    level.gapSlots = gap;
  }
}

/**
 * Lays out a tree; null if the sizes are outside of their limits.
 * @param {Geometry} geometry
 * @param {boolean} join true if pages of one line are joined
 * @returns {Tree | null}
 */
export function treeOf(geometry, join) {
  const { keys, dk, dl, dp } = geometry;
  if (dk < 1 || dk > dl || dl > dp || dl > 16 || dp > 64 || keys > 2 ** 48) {
    return null;
  }
  const depth = treeLevels(keys);
  const gap = Math.min(keys, nodes(depth));
  /** @type {Tree} */
  const tree = { geometry, depth, gap, pages: [], slots: 0 };
  let above = 0;
  while (above < depth) {
    const page = pageLevel(geometry, depth, gap, above, tree.slots, join);
    tree.slots = page.start + span(page);
    above += page.levels;
    tree.pages.push(page);
  }
  return tree;
}

/** Bytes of a full tree. @param {Tree} tree */
export const treeBytes = (tree) => alignUp(tree.slots * tree.geometry.keyBytes, 64) + 64;

/**
 * Slot of a node inside of its line: blocks of dk levels, breadth-first.
 * @param {number} levels of the line
 * @param {number} dk
 * @param {number} depth of the node in the line
 * @param {number} node its number at this depth
 */
function slotInLine(levels, dk, depth, node) {
  const above = Math.floor(depth / dk) * dk;
  const block = Math.min(levels - above, dk);
  const within = depth - above;
  return nodes(above) + right(node, within) * nodes(block) + nodes(within) + (node % 2 ** within);
}

/**
 * Slot of a node counted from the start of its page; -1 if its line does not exist.
 * @param {Tree} tree
 * @param {PageLevel} level
 * @param {number} part 1 in the last page of the level
 * @param {number} inside depth of the node in the page
 * @param {number} node its number at this depth of the page, or of all pages if they are joined
 */
export function slotInPage(tree, level, part, inside, node) {
  for (const line of level.lines) {
    if (inside < line.above + line.levels) {
      const within = inside - line.above;
      const number = right(node, within);
      if (number > line.last[part]) {
        return -1;
      }
      const group = right(number, line.group);
      const place = line.start[part] + group * line.pitch + (number % 2 ** line.group) * nodes(line.levels);
      return place + slotInLine(line.levels, tree.geometry.dk, within, node % 2 ** within);
    }
  }
  return -1;
}

/**
 * Slot of a node of a full tree; -1 if there is none.
 * @param {Tree} tree
 * @param {number} depth
 * @param {number} node its number at this depth
 */
export function slotOf(tree, depth, node) {
  const level = tree.pages.find((page) => depth < page.above + page.levels);
  if (!level) {
    return -1;
  }
  const inside = depth - level.above;
  const page = level.joined ? 0 : right(node, inside);
  if (page > level.last) {
    return -1;
  }
  const part = page === level.last ? 1 : 0;
  const slot = slotInPage(tree, level, part, inside, level.joined ? node : node % 2 ** inside);
  return slot < 0 ? -1 : pageSlot(level, page) + slot;
}

/**
 * Rank of a slot among the keys of its line.
 * @param {number} levels
 * @param {number} dk
 * @param {number} slot
 */
function rankInLine(levels, dk, slot) {
  let above = 0;
  while (above + dk < levels && slot >= nodes(above + dk)) {
    above += dk;
  }
  const block = Math.min(levels - above, dk);
  const inside = slot - nodes(above);
  const [number, place] = [Math.floor(inside / nodes(block)), inside % nodes(block)];
  const depth = Math.floor(Math.log2(place + 1));
  const node = number * 2 ** depth + place - nodes(depth);
  return (2 * node + 1) * 2 ** (levels - 1 - above - depth) - 1;
}

/** @type {Map<number, Int32Array>} */
const RANKS = new Map();

/**
 * Ranks of the slots of a line among its keys.
 * @param {number} levels at most 16
 * @param {number} dk
 */
function ranksOf(levels, dk) {
  const key = 256 * levels + dk;
  let ranks = RANKS.get(key);
  if (!ranks) {
    ranks = Int32Array.from({ length: nodes(levels) }, (_, slot) => rankInLine(levels, dk, slot));
    RANKS.set(key, ranks);
  }
  return ranks;
}

/** The lines of one level of a page, for slots that are looked at one after the other. */
export class LineRun {
  /**
   * @param {Tree} tree
   * @param {PageLevel} level
   * @param {number} page
   * @param {number} inside slot in the page
   */
  constructor(tree, level, page, inside) {
    const part = page === level.last ? 1 : 0;
    let number = 0;
    while (number + 1 < level.lines.length && level.lines[number + 1].start[part] <= inside) {
      number += 1;
    }
    const line = level.lines[number];
    const next = level.lines[number + 1];
    this.start = line.start[part];
    /** Slot of the page up to which this holds. */
    this.end = Math.max(next ? next.start[part] : level.slots[part], inside + 1);
    this.pitch = line.pitch;
    this.group = 2 ** line.group;
    this.size = nodes(line.levels);
    this.last = line.last[part];
    this.ranks = ranksOf(line.levels, tree.geometry.dk);
    /** Tuples from one node of a line to the next one, and from one line to the next one. */
    this.step = 2 ** line.below;
    this.span = 2 ** line.levels * this.step;
    this.first = level.joined ? 0 : page * 2 ** line.above;
  }

  /** In-order index of the node in a slot of the page; -1 if the slot is free. @param {number} inside */
  index(inside) {
    const rest = inside - this.start;
    const group = Math.floor(rest / this.pitch);
    const slot = rest - group * this.pitch;
    const of = this.group === 1 && slot < this.size ? 0 : Math.floor(slot / this.size);
    const number = group * this.group + of;
    if (of >= this.group || number > this.last) {
      return -1;
    }
    return (this.first + number) * this.span + (this.ranks[slot - of * this.size] + 1) * this.step - 1;
  }
}

/**
 * In-order index of the node in a slot of a full tree; -1 if the slot is free.
 * @param {Tree} tree
 * @param {number} slot
 */
export function indexOf(tree, slot) {
  const found = pageOfSlot(tree, slot);
  return found ? new LineRun(tree, found.level, found.page, found.inside).index(found.inside) : -1;
}

/**
 * The page of a slot of a full tree, and the slot in it; null if no page has it.
 * @param {Tree} tree
 * @param {number} slot
 */
export function pageOfSlot(tree, slot) {
  let level = null;
  for (const page of tree.pages) {
    level = page.start <= slot ? page : level;
  }
  if (!level) {
    return null;
  }
  const inside = slot - level.start;
  let page;
  if (level.gapSlots === 0) {
    page = Math.floor(inside / level.slots[0]);
  } else {
    const unit = level.unitPages * level.slots[0] + level.gapSlots;
    const own = Math.floor((inside % unit) / level.slots[0]);
    if (own >= level.unitPages) {
      return null;
    }
    page = Math.floor(inside / unit) * level.unitPages + own;
  }
  page = Math.min(page, level.last);
  return { level, page, inside: slot - pageSlot(level, page) };
}

/**
 * @typedef {{form: number, geometry: Geometry, tree: Tree, bytes: number, records: number[], pages: number,
 *   recordBytes: number, pagesAt: number, narrow: Map<number, Tree>}} FastShape
 * `narrow` has the layout inside of pages of each width; it is empty in the full form.
 */

/**
 * @param {import('./shape.js').Parameters} stored
 * @param {number} keys
 * @param {number} length
 * @param {number} wordBytes
 * @returns {FastShape | null}
 */
export function fastShape(stored, keys, length, wordBytes) {
  const [form, dk, dl, dp, padded] = stored.bytes.subarray(12, 17);
  if (stored.u32(0) !== 64 || stored.u32(4) !== wordBytes || !stored.areZero(17) || padded > 3) {
    return null;
  }
  if (form > 3 || (form === 2 && wordBytes === 4)) {
    return null;
  }
  const geometry = {
    keys,
    keyBytes: wordBytes,
    dk,
    dl,
    dp,
    padded: (padded & 1) !== 0,
    aligned: (padded & 2) !== 0,
  };
  const tree = treeOf(geometry, true);
  if (!tree || stored.u32(8) !== tree.depth) {
    return null;
  }
  const shape = {
    form,
    geometry,
    tree,
    bytes: length,
    records: [],
    pages: 0,
    recordBytes: wordBytes === 16 ? 32 : 16,
    pagesAt: 0,
    narrow: new Map(),
  };
  if (form === 0) {
    return treeBytes(tree) === length ? shape : null;
  }
  return pagedShape(shape, length);
}

/**
 * @param {FastShape} shape
 * @param {number} length
 */
function pagedShape(shape, length) {
  const { geometry } = shape;
  for (const width of [2, 4, 8, 16]) {
    if (width <= geometry.keyBytes) {
      const deeper = Math.log2(geometry.keyBytes / width);
      const own = { ...geometry, keyBytes: width, dk: geometry.dk + deeper, dl: geometry.dl + deeper, aligned: false };
      const tree = treeOf(own, false);
      if (!tree) {
        return null;
      }
      shape.narrow.set(width, tree);
    }
  }
  for (const level of pagedLevels(shape)) {
    shape.records.push(shape.pages);
    shape.pages += level.last + 1;
  }
  shape.pagesAt = alignUp(shape.pages * shape.recordBytes, 64);
  return length >= alignUp(shape.pagesAt, 64) + 64 ? shape : null;
}

/** Levels of pages of a compressed tree. @param {FastShape} shape @returns {PageLevel[]} */
export const pagedLevels = (shape) => shape.narrow.get(shape.geometry.keyBytes)?.pages ?? [];

/**
 * Place of a page of so many bytes, if the page before it ends at `end`.
 * @param {FastShape} shape
 * @param {number} bytes
 * @param {number} end
 */
export function placeOfPage(shape, bytes, end) {
  const at = alignUp(end, bytes > 32 ? 64 : bytes > 16 ? 32 : 16);
  const straddles = shape.geometry.aligned && (at % HUGE_BYTES) + bytes > HUGE_BYTES;
  return straddles ? alignUp(at, HUGE_BYTES) : at;
}

/** Bytes of a compressed tree whose last page ends there. @param {number} end */
export const pagedBytes = (end) => alignUp(end, 64) + 64;

/**
 * @typedef {{base: bigint, kept: number, width: number, place: number}} PageRecord
 */

/**
 * @param {DataView} view
 * @param {number} at
 * @param {number} keyBytes
 * @returns {PageRecord}
 */
export function pageRecord(view, at, keyBytes) {
  const low = view.getBigUint64(at, true);
  if (keyBytes === 16) {
    const base = (view.getBigUint64(at + 8, true) << 64n) | low;
    const place = Number(view.getBigUint64(at + 24, true));
    return { base, kept: view.getUint32(at + 16, true), width: view.getUint8(at + 20), place };
  }
  const place = (view.getUint8(at + 11) + 2 ** 8 * view.getUint32(at + 12, true)) * 16;
  return { base: low, kept: view.getUint16(at + 8, true), width: view.getUint8(at + 10), place };
}

/** Number of bits that are set. @param {number} bits of 32 */
export function popcount(bits) {
  let left = bits - ((bits >>> 1) & 0x55555555);
  left = (left & 0x33333333) + ((left >>> 2) & 0x33333333);
  return Math.imul((left + (left >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** The bits of the nibbles that are kept. @param {PageRecord} record */
export function keptBits(record) {
  let mask = 0n;
  for (let at = 0; at < 32; at++) {
    if ((record.kept >>> at) & 1) {
      mask |= 15n << BigInt(4 * at);
    }
  }
  return mask;
}

/** The bits in which all keys of a page agree. @param {PageRecord} record */
export function agreedBits(record) {
  const all = (1n << 128n) - 1n;
  const mask = keptBits(record);
  const isFull = popcount(record.kept) >= 2 * record.width && mask !== 0n;
  const known = isFull ? all ^ ((mask & -mask) - 1n) : all;
  return known & (all ^ mask);
}

/**
 * The kept nibbles of a key, packed.
 * @param {PageRecord} record
 * @param {bigint} key
 */
export function packedNibbles(record, key) {
  let word = 0n;
  for (let at = 31; at >= 0; at--) {
    if ((record.kept >>> at) & 1) {
      word = (word << 4n) | ((key >> BigInt(4 * at)) & 15n);
    }
  }
  return word;
}

/**
 * A query as a word of a page; null if all words are below it.
 * @param {PageRecord} record
 * @param {bigint} query
 * @returns {{word: bigint, above: boolean} | null}
 */
export function probe(record, query) {
  if (record.kept === 0) {
    const word = query > record.base ? query - record.base : 0n;
    return word >> BigInt(8 * record.width) === 0n ? { word, above: false } : null;
  }
  const off = (query ^ record.base) & agreedBits(record);
  if (off === 0n) {
    return { word: packedNibbles(record, query), above: false };
  }
  const top = 1n << BigInt(off.toString(2).length - 1);
  const after = top | (top - 1n);
  const above = (query & top) !== 0n;
  return { word: packedNibbles(record, above ? query | after : query & ~after), above };
}

/**
 * The word of a key in a page; null if a page with this record has none for it.
 * @param {PageRecord} record
 * @param {bigint} key
 */
export function wordInPage(record, key) {
  if (record.kept === 0) {
    const word = key - record.base;
    return word >= 0n && word >> BigInt(8 * record.width) === 0n ? word : null;
  }
  return ((key ^ record.base) & agreedBits(record)) === 0n ? packedNibbles(record, key) : null;
}
