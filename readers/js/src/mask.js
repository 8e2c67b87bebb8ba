/**
 * MASK: how byte keys become words, and words with their tails become keys.
 *
 * Bits are gathered and spread a byte at a time, by tables of all bytes under all masks.
 */
import { Refusal } from './error.js';

/** GATHER[mask * 256 + byte]: the kept bits of a byte at the low end, in their order. */
const GATHER = new Uint8Array(65536);
/** SPREAD[mask * 256 + bits]: the reverse. */
export const SPREAD = new Uint8Array(65536);
/** Number of bits of each byte. */
export const BITS = new Uint8Array(256);
for (let mask = 0; mask < 256; mask++) {
  for (let byte = 0; byte < 256; byte++) {
    let [bits, spread, at] = [0, 0, 0];
    for (let bit = 0; bit < 8; bit++) {
      if ((mask >> bit) & 1) {
        bits |= ((byte >> bit) & 1) << at;
        spread |= ((byte >> at) & 1) << bit;
        at += 1;
      }
    }
    GATHER[mask * 256 + byte] = bits;
    SPREAD[mask * 256 + byte] = spread;
    BITS[mask] = at;
  }
}

/** Bits of a tail as bytes, the least significant bit first. */
class BitWriter {
  /** @param {number} bytes */
  constructor(bytes) {
    this.bytes = new Uint8Array(bytes);
    this.at = 0;
  }
  /** @param {number} value @param {number} count at most 16 */
  push(value, count) {
    const at = this.at >> 3;
    const moved = value << (this.at & 7);
    for (let byte = 0; byte < 3 && moved >> (8 * byte) !== 0; byte++) {
      this.bytes[at + byte] |= moved >> (8 * byte);
    }
    this.at += count;
  }
}

export class Mask {
  /**
   * Reads the section.
   * @param {Uint8Array} bytes
   * @param {number} wordBytes
   */
  constructor(bytes, wordBytes) {
    /** @param {string} text */
    const refuse = (text) => new Refusal('mask', text);
    if (bytes.length < 32) {
      throw refuse('it has fewer than 32 bytes');
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.keyBytesMax = view.getUint32(0, true);
    this.covered = view.getUint32(4, true);
    this.lengthMask = view.getUint16(8, true);
    this.isLossless = bytes[10] === 1;
    this.isFixed = bytes[11] === 1;
    this.tailBytes = view.getUint16(12, true);
    if (this.keyBytesMax > 65535) {
      throw refuse(`keys of ${this.keyBytesMax} bytes`);
    }
    const described = this.tailBytes > 0 ? this.keyBytesMax : this.covered;
    if (this.covered > this.keyBytesMax || bytes.length !== 32 + 2 * described) {
      throw refuse('its arrays are not as long as the bytes that they describe');
    }
    if (bytes[10] > 1 || bytes[11] > 1 || bytes.subarray(14, 32).some((byte) => byte !== 0)) {
      throw refuse('a flag is neither 0 nor 1, or a reserved byte is not zero');
    }
    if (this.isLossless && (this.covered !== this.keyBytesMax || this.tailBytes > 0)) {
      throw refuse('a word that is a whole key covers all of it, without a tail');
    }
    if (this.tailBytes > 1024) {
      throw refuse('a tail has at most 1024 bytes');
    }
    if (this.lengthMask & (this.lengthMask + 1)) {
      throw refuse('the kept bits of the length are not the lowest ones');
    }
    if (this.lengthMask !== 0 && (this.isFixed || !(this.isLossless || this.tailBytes > 0))) {
      throw refuse('a length is kept that neither words nor tails hold');
    }
    this.reference = bytes.slice(32, 32 + described).map((byte, at) => byte & ~bytes[32 + described + at]);
    this.mask = bytes.slice(32 + described);
    /** Reports bits of the reference that are kept, which must be zero. */
    this.hasKeptReference = this.mask.some((mask, at) => (mask & bytes[32 + at]) !== 0);
    this.lengthBits = BITS[this.lengthMask & 255] + BITS[this.lengthMask >> 8];
    let bits = this.isLossless ? this.lengthBits : 0;
    let tailBits = this.isLossless ? 0 : this.lengthBits;
    this.mask.forEach((mask, at) => {
      if (at < this.covered) {
        bits += BITS[mask];
      } else {
        tailBits += BITS[mask];
      }
    });
    if (bits > 8 * wordBytes) {
      throw refuse('the kept bits do not fit in a word');
    }
    if (tailBits > 8 * this.tailBytes) {
      throw refuse('the kept bits behind the word do not fit in a tail');
    }
    this.bits = bits;
    /** Bytes of which a bit is kept, in the word and in the tail. */
    this.places = Int32Array.from([...this.mask.keys()].filter((at) => at < this.covered && this.mask[at] !== 0));
    this.tailPlaces = Int32Array.from([...this.mask.keys()].filter((at) => at >= this.covered && this.mask[at] !== 0));
  }

  /** Reports whether all keys have this length, or may have it. @param {number} length */
  isLength(length) {
    return length <= this.keyBytesMax && ((length ^ this.keyBytesMax) & 0xffff & ~this.lengthMask) === 0;
  }

  /**
   * Puts the word of a key into four numbers, the lowest first. Returns false if the key has no word.
   * @param {Uint8Array} key
   * @param {Uint32Array} word
   */
  wordOf(key, word) {
    const { reference, mask, places, covered } = this;
    const { length } = key;
    for (let at = 0; at < covered; at++) {
      if ((((at < length ? key[at] : 0) ^ reference[at]) & ~mask[at]) !== 0) {
        return false;
      }
    }
    if (this.isLossless && !this.isLength(length)) {
      return false;
    }
    word.fill(0);
    for (let number = 0; number < places.length; number++) {
      const at = places[number];
      const kept = mask[at];
      shiftIn(word, GATHER[kept * 256 + (at < length ? key[at] : 0)], BITS[kept]);
    }
    if (this.isLossless && this.lengthBits > 0) {
      shiftIn(word, length & this.lengthMask, this.lengthBits);
    }
    return true;
  }

  /**
   * Returns where a query belongs among the words. With `isKey`, keys with that word may equal it. Else it comes
   * before all keys from that word on, or with `isAfter` behind all keys up to it.
   * @param {Uint8Array} query
   * @returns {{word: bigint, isKey: boolean, isAfter: boolean}}
   */
  place(query) {
    const word = new Uint32Array(4);
    if (this.wordOf(query, word)) {
      return { word: numberOfWord(word), isKey: true, isAfter: false };
    }
    let left = this.bits;
    let found = 0n;
    for (let at = 0; at < this.covered; at++) {
      const [mask, byte] = [this.mask[at], query[at] ?? 0];
      left -= BITS[mask];
      const different = (byte ^ this.reference[at]) & ~mask & 255;
      if (different === 0) {
        found = (found << BigInt(BITS[mask])) | BigInt(GATHER[mask * 256 + byte]);
        continue;
      }
      // The first bit that no key has decides: kept bits behind it are all zero or all one.
      const top = 128 >> (Math.clz32(different) - 24);
      const isAfter = (byte & top) !== 0;
      const decided = isAfter ? byte | (top - 1) : byte & ~(top - 1);
      found = (found << BigInt(BITS[mask])) | BigInt(GATHER[mask * 256 + decided]);
      return this.gap(found, left, isAfter);
    }
    return this.gap(found, this.lengthBits, query.length > this.keyBytesMax);
  }

  /**
   * @param {bigint} word
   * @param {number} bits
   * @param {boolean} isAfter
   */
  gap(word, bits, isAfter) {
    const high = word << BigInt(bits);
    return { word: isAfter ? high | ((1n << BigInt(bits)) - 1n) : high, isKey: false, isAfter };
  }

  /**
   * Returns the key of a word, which is a whole key, or has this tail.
   * @param {Uint32Array} word four numbers, the lowest first; they are used up
   * @param {Uint8Array | null} tail
   */
  keyOf(word, tail) {
    const { mask, places } = this;
    const key = this.reference.slice(0, this.keyBytesMax);
    const whole = key.length < this.keyBytesMax ? new Uint8Array(this.keyBytesMax) : key;
    whole.set(key);
    let length = this.keyBytesMax;
    if (this.isLossless) {
      length = (length & ~this.lengthMask) | (word[0] & this.lengthMask);
      shiftOut(word, this.lengthBits);
    }
    for (let number = places.length - 1; number >= 0; number--) {
      const at = places[number];
      const kept = mask[at];
      whole[at] |= SPREAD[kept * 256 + (word[0] & ((1 << BITS[kept]) - 1))];
      shiftOut(word, BITS[kept]);
    }
    if (tail) {
      length = this.readTail(tail, whole);
    }
    return whole.subarray(0, Math.min(length, this.keyBytesMax));
  }

  /**
   * Puts what a tail holds into a key. Returns the length of the key.
   * @param {Uint8Array} tail
   * @param {Uint8Array} key
   */
  readTail(tail, key) {
    const { mask, tailPlaces } = this;
    let bit = 0;
    for (let number = 0; number < tailPlaces.length; number++) {
      const at = tailPlaces[number];
      const kept = mask[at];
      key[at] |= SPREAD[kept * 256 + (bitsAt(tail, bit) & ((1 << BITS[kept]) - 1))];
      bit += BITS[kept];
    }
    const own = bitsAt(tail, bit) & ((1 << this.lengthBits) - 1);
    return Math.min((this.keyBytesMax & ~this.lengthMask) | own, this.keyBytesMax);
  }

  /** Returns the tail that follows from a key. @param {Uint8Array} key */
  tailOf(key) {
    const { mask, tailPlaces } = this;
    const out = new BitWriter(this.tailBytes);
    for (let number = 0; number < tailPlaces.length; number++) {
      const at = tailPlaces[number];
      const kept = mask[at];
      out.push(GATHER[kept * 256 + (at < key.length ? key[at] : 0)], BITS[kept]);
    }
    out.push(key.length & this.lengthMask, this.lengthBits);
    return out.bytes;
  }
}

/**
 * At least 16 bits of a tail from one on.
 * @param {Uint8Array} tail
 * @param {number} bit
 */
function bitsAt(tail, bit) {
  const at = bit >> 3;
  const { length } = tail;
  const three =
    (at < length ? tail[at] : 0) |
    ((at + 1 < length ? tail[at + 1] : 0) << 8) |
    ((at + 2 < length ? tail[at + 2] : 0) << 16);
  return three >>> (bit & 7);
}

/** @param {Uint32Array} word @param {number} value @param {number} bits at most 16 */
function shiftIn(word, value, bits) {
  if (bits === 0) {
    return;
  }
  word[3] = (word[3] << bits) | (word[2] >>> (32 - bits));
  word[2] = (word[2] << bits) | (word[1] >>> (32 - bits));
  word[1] = (word[1] << bits) | (word[0] >>> (32 - bits));
  word[0] = (word[0] << bits) | value;
}

/** @param {Uint32Array} word @param {number} bits at most 16 */
function shiftOut(word, bits) {
  if (bits === 0) {
    return;
  }
  word[0] = (word[0] >>> bits) | (word[1] << (32 - bits));
  word[1] = (word[1] >>> bits) | (word[2] << (32 - bits));
  word[2] = (word[2] >>> bits) | (word[3] << (32 - bits));
  word[3] >>>= bits;
}

/** Returns four numbers as one. @param {Uint32Array} word the lowest first */
export function numberOfWord(word) {
  const low = (BigInt(word[1]) << 32n) | BigInt(word[0]);
  return word[2] | word[3] ? (BigInt(word[3]) << 96n) | (BigInt(word[2]) << 64n) | low : low;
}

/**
 * Puts a number into four, the lowest first.
 * @param {bigint} number
 * @param {Uint32Array} word
 */
export function splitWord(number, word) {
  for (let at = 0; at < 4; at++) {
    word[at] = Number((number >> BigInt(32 * at)) & 0xffffffffn);
  }
  return word;
}

/**
 * Compares two byte strings: by bytes, a string before its extensions.
 * @param {Uint8Array} one
 * @param {Uint8Array} other
 */
export function compareBytes(one, other) {
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at++) {
    if (one[at] !== other[at]) {
      return one[at] - other[at];
    }
  }
  return one.length - other.length;
}
