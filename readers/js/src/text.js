/**
 * TEXT: byte keys by page. A page has a head as it is, and of each other key what it shares with the head and codes
 * of the rest.
 */
import { SYMBOLS_BYTES, TEXT_PAGE_KEYS } from './shape.js';

export const ESCAPE = 255;
export const WIDE = 1;
export const PLAIN = 2;
export const PRINTS_AT = 5;
export const SHARED_AT = 21;
export const FIRST_AT = 36;
export const LENGTHS_AT = 51;
export const HEAD_AT = 66;
export const HEAD_AT_WIDE = 81;
export const KEY_BYTES_MAX = 65535;
const FOLLOWERS = TEXT_PAGE_KEYS - 1;

/** The symbols that codes stand for. */
export class Symbols {
  /** @param {Uint8Array} table */
  constructor(table) {
    this.lengths = table.slice(0, 256).map((length) => Math.min(length, 8));
    this.lengths[ESCAPE] = 0;
    this.bytes = table.slice(256, SYMBOLS_BYTES);
    const view = new DataView(this.bytes.buffer);
    /** The same as two numbers for each code. */
    this.words = Uint32Array.from({ length: 512 }, (_, at) => view.getUint32(4 * at, true));
  }

  /**
   * Puts the bytes of codes behind others. Returns the end.
   * @param {Uint8Array} codes
   * @param {Uint8Array} out
   * @param {number} at
   */
  decode(codes, out, at) {
    let to = at;
    for (let next = 0; next < codes.length && to < out.length; next++) {
      const code = codes[next];
      if (code === ESCAPE) {
        next += 1;
        if (next < codes.length) {
          out[to++] = codes[next];
        }
        continue;
      }
      const length = this.lengths[code];
      for (let byte = 0; byte < length && to < out.length; byte++) {
        out[to++] = this.bytes[8 * code + byte];
      }
    }
    return to;
  }
}

const ROOM = new Uint8Array(KEY_BYTES_MAX + 1);

/** A page whose keys are read. Whatever the bytes are, nothing outside of them is looked at. */
export class TextPage {
  /**
   * @param {Uint8Array} bytes
   * @param {number} keys
   * @param {Symbols} symbols
   */
  constructor(bytes, keys, symbols) {
    this.symbols = symbols;
    this.keys = bytes.length < HEAD_AT ? 0 : keys;
    this.bytes = bytes.length < HEAD_AT ? new Uint8Array(HEAD_AT) : bytes;
    const own = this.bytes;
    this.isWide = (own[4] & WIDE) !== 0;
    const headAt = this.isWide ? HEAD_AT_WIDE : HEAD_AT;
    this.codesAt = Math.min(headAt + (own[0] | (own[1] << 8)), own.length);
    this.head = own.subarray(Math.min(headAt, this.codesAt), this.codesAt);
    this.base = Math.min(own[2] | (own[3] << 8), this.head.length);
  }

  /** Length of the rest of a follower and one more, or 0. @param {number} slot from 1 */
  length(slot) {
    const at = LENGTHS_AT + (this.isWide ? 2 : 1) * (slot - 1);
    return this.isWide ? (this.bytes[at] ?? 0) | ((this.bytes[at + 1] ?? 0) << 8) : this.bytes[at];
  }

  /** Returns a key, of which no more than 65,536 bytes. @param {number} slot */
  key(slot) {
    if (slot === 0 || slot >= this.keys) {
      return slot === 0 ? this.head.slice() : new Uint8Array(0);
    }
    let from = this.codesAt;
    for (let before = 1; before < slot; before++) {
      from += Math.max(this.length(before) - 1, 0);
    }
    const shared = Math.min(this.base + this.bytes[SHARED_AT + slot - 1], this.head.length);
    ROOM.set(this.head.subarray(0, shared));
    let end = shared;
    const length = this.length(slot);
    if (length > 0) {
      ROOM[end++] = this.bytes[FIRST_AT + slot - 1];
      const codes = this.bytes.subarray(from, from + length - 1);
      if (this.bytes[4] & PLAIN) {
        const own = codes.subarray(0, ROOM.length - end);
        ROOM.set(own, end);
        end += own.length;
      } else {
        end = this.symbols.decode(codes, ROOM, end);
      }
    }
    return ROOM.slice(0, end);
  }
}

/**
 * The fingerprint of a key: the upper 8 bits of a sum of products modulo 2^64.
 * @param {Uint8Array} key
 */
export function printOf(key) {
  let sum = BigInt(key.length) * 0xd6e8feb86659fd93n;
  const factors = [0x9e3779b97f4a7c15n, 0xc2b2ae3d27d4eb4fn, 0x165667b19e3779f9n];
  for (let part = 0; part < 3; part++) {
    const end = key.length - 8 * part;
    let word = 0n;
    const start = Math.max(end - 8, 0);
    for (let at = end - 1; at >= start; at--) {
      word = (word << 8n) | BigInt(key[at]);
    }
    sum += word * factors[part];
  }
  return Number((sum >> 56n) & 255n);
}

/**
 * Bytes that two keys have in common at their start.
 * @param {Uint8Array} one
 * @param {Uint8Array} other
 */
export function commonBytes(one, other) {
  const length = Math.min(one.length, other.length);
  let at = 0;
  while (at < length && one[at] === other[at]) {
    at += 1;
  }
  return at;
}

/**
 * Place of the first byte in which two keys differ if zeros follow them; -1 if there is none.
 * @param {Uint8Array} one
 * @param {Uint8Array} other
 * @param {number} limit
 */
export function differAt(one, other, limit) {
  const length = Math.min(Math.max(one.length, other.length), limit);
  for (let at = 0; at < length; at++) {
    if ((one[at] ?? 0) !== (other[at] ?? 0)) {
      return at;
    }
  }
  return -1;
}

/**
 * The eight bytes of a text from one on, the first one most significant.
 * @param {Uint8Array} text
 * @param {number} at
 */
export function sliceOf(text, at) {
  let slice = 0n;
  for (let byte = 0; byte < 8; byte++) {
    slice = (slice << 8n) | BigInt(text[at + byte] ?? 0);
  }
  return slice;
}

/**
 * @typedef {{node: number} | {first: number, more: number}} Child
 * @typedef {{prefix: number, slots: number, children: Child[], slices: bigint[], isRun: boolean}} TrieNode
 */

/**
 * Reads a node of TRIE.
 * @param {DataView} view
 * @param {number} at
 * @returns {TrieNode}
 */
export function trieNode(view, at) {
  const slots = Math.min(view.getUint8(at + 2), 10);
  const isRun = view.getUint8(at + 3) !== 0;
  /** @type {Child[]} */
  const children = [];
  if (isRun) {
    children.push({ first: view.getUint32(at + 4, true), more: view.getUint32(at + 8, true) });
  } else {
    for (let slot = 0; slot <= slots; slot++) {
      const word = view.getUint32(at + 4 + 4 * slot, true);
      children.push(word >>> 31 ? { node: word & 0x7fffffff } : { first: word & 0x1fffffff, more: word >>> 29 });
    }
  }
  const slices = Array.from({ length: slots }, (_, slot) => view.getBigUint64(at + 48 + 8 * slot, true));
  return { prefix: view.getUint16(at, true), slots, children, slices, isRun };
}

export { FOLLOWERS };
