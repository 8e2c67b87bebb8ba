/**
 * All keys of a page of TEXT at once, in memory that is used again. A page that is not plainly right is left to the
 * slower code, which says what is wrong with it.
 */
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
  WIDE,
} from '../text.js';
import { TEXT_PAGE_KEYS } from '../shape.js';

/** Factors of a fingerprint: of the length, and of the last three words of a key; low and high halves. */
const LOW = Uint32Array.of(0x6659fd93, 0x7f4a7c15, 0x27d4eb4f, 0x9e3779f9);
const HIGH = Uint32Array.of(0xd6e8feb8, 0x9e3779b9, 0xc2b2ae3d, 0x165667b1);

/**
 * The upper half of the product of two numbers of 32 bits.
 * @param {number} one
 * @param {number} other
 */
function upper(one, other) {
  const a = one & 0xffff;
  const b = one >>> 16;
  const c = other & 0xffff;
  const d = other >>> 16;
  const left = a * d;
  const right = b * c;
  const middle = ((a * c) >>> 16) + (left & 0xffff) + (right & 0xffff);
  return b * d + (left >>> 16) + (right >>> 16) + (middle >>> 16);
}

/**
 * The fingerprint of a key, as `printOf` in text.js, which has products of BigInts.
 * @param {Uint8Array} bytes
 * @param {number} start
 * @param {number} end
 */
export function fingerprint(bytes, start, end) {
  let low = Math.imul(end - start, LOW[0]) >>> 0;
  let high = (Math.imul(end - start, HIGH[0]) >>> 0) + upper(end - start, LOW[0]);
  for (let part = 1, to = end; part < 4 && to > start; part++, to -= 8) {
    let a = 0;
    let b = 0;
    if (to - start >= 8) {
      a = bytes[to - 8] | (bytes[to - 7] << 8) | (bytes[to - 6] << 16) | (bytes[to - 5] << 24);
      b = bytes[to - 4] | (bytes[to - 3] << 8) | (bytes[to - 2] << 16) | (bytes[to - 1] << 24);
    } else {
      for (let at = to - 1; at >= start; at--) {
        b = (b << 8) | (a >>> 24);
        a = (a << 8) | bytes[at];
      }
    }
    low += Math.imul(a, LOW[part]) >>> 0;
    high += upper(a, LOW[part]) + (Math.imul(a, HIGH[part]) >>> 0) + (Math.imul(b, LOW[part]) >>> 0);
  }
  return ((high + Math.floor(low / 2 ** 32)) % 2 ** 32) >>> 24;
}

/** Keys of a page, one after the other in `bytes`. */
export class PageKeys {
  constructor() {
    this.bytes = new Uint8Array(1 << 16);
    this.view = new DataView(this.bytes.buffer);
    this.starts = new Int32Array(TEXT_PAGE_KEYS + 1);
    /** Bytes that each key shares with the head. */
    this.prefixes = new Int32Array(TEXT_PAGE_KEYS);
    /** Bits that any byte has. */
    this.any = 0;
  }

  /**
   * Makes room for so many bytes, and for what is copied behind them.
   * @param {number} length
   */
  grow(length) {
    if (this.bytes.length < length + 8) {
      this.bytes = new Uint8Array(2 * length + 8);
      this.view = new DataView(this.bytes.buffer);
    }
  }

  /**
   * Decodes a page of 16 keys. Returns false if it breaks a rule, or may break one.
   * @param {Uint8Array} page memory with the page
   * @param {number} at
   * @param {number} length
   * @param {import('../text.js').Symbols} symbols
   */
  decode(page, at, length, symbols) {
    const flags = page[at + 4];
    if (flags > (WIDE | PLAIN)) {
      return false;
    }
    const isWide = (flags & WIDE) !== 0;
    const headAt = isWide ? HEAD_AT_WIDE : HEAD_AT;
    const headLength = page[at] | (page[at + 1] << 8);
    const base = page[at + 2] | (page[at + 3] << 8);
    // Codes stand for 8 bytes at most.
    this.grow(TEXT_PAGE_KEYS * headLength + 8 * length);
    const { bytes, view, starts } = this;
    starts[0] = 0;
    this.prefixes[0] = headLength;
    this.any = 0;
    let end = this.copy(page, at + headAt, at + headAt + headLength, 0);
    let [from, longest] = [at + headAt + headLength, 0];
    for (let slot = 1; slot < TEXT_PAGE_KEYS; slot++) {
      starts[slot] = end;
      const shared = page[at + SHARED_AT + slot - 1];
      const first = page[at + FIRST_AT + slot - 1];
      const lengthAt = at + LENGTHS_AT + (isWide ? 2 * slot - 2 : slot - 1);
      const own = isWide ? page[lengthAt] | (page[lengthAt + 1] << 8) : page[lengthAt];
      longest = Math.max(longest, own);
      const prefix = base + shared;
      this.prefixes[slot] = prefix;
      const codesEnd = from + Math.max(own - 1, 0);
      if (prefix > headLength || codesEnd > at + length || (own === 0 && first !== 0)) {
        return false;
      }
      // Unless both go on, the key shares no more; the last key shares the base and no more.
      if (own > 0 && prefix < headLength && shared < 255 && bytes[prefix] === first) {
        return false;
      }
      for (let byte = 0; byte < prefix; byte += 4) {
        view.setUint32(end + byte, view.getUint32(byte));
      }
      end += prefix;
      if (own > 0) {
        bytes[end++] = first;
        this.any |= first;
        end = flags & PLAIN ? this.copy(page, from, codesEnd, end) : this.expand(page, from, codesEnd, end, symbols);
        if (end < 0) {
          return false;
        }
      }
      from = codesEnd;
      if (end - starts[slot] > KEY_BYTES_MAX || (slot + 1 === TEXT_PAGE_KEYS && shared !== 0)) {
        return false;
      }
    }
    starts[TEXT_PAGE_KEYS] = end;
    return from === at + length && !(isWide && longest <= 255) && this.arePrints(page, at);
  }

  /** @param {Uint8Array} page @param {number} from @param {number} to @param {number} end */
  copy(page, from, to, end) {
    const { bytes } = this;
    let any = 0;
    for (let at = from; at < to; at++) {
      const byte = page[at];
      bytes[end++] = byte;
      any |= byte;
    }
    this.any |= any;
    return end;
  }

  /**
   * Puts the bytes of codes behind others. Returns the end; -1 if a code has no symbol.
   * @param {Uint8Array} page
   * @param {number} from
   * @param {number} to
   * @param {number} end
   * @param {import('../text.js').Symbols} symbols
   */
  expand(page, from, to, end, symbols) {
    const { bytes, view } = this;
    const { lengths, words } = symbols;
    let any = 0;
    for (let at = from; at < to; at++) {
      const code = page[at];
      const length = lengths[code];
      if (length > 0) {
        // All 8 bytes of a symbol: those behind its end are written over.
        view.setUint32(end, words[2 * code], true);
        view.setUint32(end + 4, words[2 * code + 1], true);
        any |= words[2 * code] | words[2 * code + 1];
        end += length;
      } else if (code === ESCAPE && at + 1 < to) {
        at += 1;
        any |= page[at];
        bytes[end++] = page[at];
      } else {
        return -1;
      }
    }
    this.any |= any & 0x80808080 ? 128 : any & 127;
    return end;
  }

  /**
   * Reports whether fingerprints are right.
   * @param {Uint8Array} page
   * @param {number} at
   */
  arePrints(page, at) {
    const { bytes, starts } = this;
    for (let slot = 0; slot < TEXT_PAGE_KEYS; slot++) {
      if (page[at + PRINTS_AT + slot] !== fingerprint(bytes, starts[slot], starts[slot + 1])) {
        return false;
      }
    }
    return true;
  }
}
