/**
 * Byte keys of words and tails in memory that is used again: what mask.js does for one key, for millions of them.
 */
import { BITS, SPREAD } from '../mask.js';

/** Bytes of which a mask keeps bits, and where in a word or a tail these are. */
class Places {
  /**
   * @param {import('../mask.js').Mask} mask
   * @param {Int32Array} places
   */
  constructor(mask, places) {
    this.at = places;
    this.kept = Int32Array.from(places, (at) => mask.mask[at]);
    this.fixed = Int32Array.from(places, (at) => mask.reference[at]);
    this.ones = this.kept.map((kept) => (1 << BITS[kept]) - 1);
    /** The lowest of its bits in the word or the tail. */
    this.bit = new Int32Array(places.length);
  }
}

export class Spread {
  /** @param {import('../mask.js').Mask} mask */
  constructor(mask) {
    this.mask = mask;
    const { keyBytesMax, covered, lengthBits, isLossless, tailBytes } = mask;
    this.own = new Places(mask, mask.places);
    let bit = isLossless ? lengthBits : 0;
    for (let number = mask.places.length - 1; number >= 0; number--) {
      this.own.bit[number] = bit;
      bit += BITS[this.own.kept[number]];
    }
    /** Bits that no word has. */
    this.spare = new Uint32Array(4).map((_, part) => (bit >= 32 * part + 32 ? 0 : -1 << Math.max(bit - 32 * part, 0)));
    this.tail = new Places(mask, mask.tailPlaces);
    bit = 0;
    for (let number = 0; number < mask.tailPlaces.length; number++) {
      this.tail.bit[number] = bit;
      bit += BITS[this.tail.kept[number]];
    }
    this.lengthBit = bit;
    this.tailBits = tailBytes > 0 ? bit + lengthBits : 0;
    /** Bits that must be zero behind the end of a key. */
    this.behind = new Uint8Array(keyBytesMax);
    mask.mask.forEach((kept, at) => {
      this.behind[at] = at < covered ? 255 : kept;
    });
    this.behind.fill(255, 0, covered);
    /** True if all keys are ASCII, whatever their kept bits are. */
    this.isAscii = covered === keyBytesMax || tailBytes > 0;
    mask.mask.forEach((kept, at) => {
      this.isAscii &&= (kept | mask.reference[at]) < 128;
    });
    /** The word, lowest part first; the last one is zero. */
    this.word = new Uint32Array(5);
  }

  /** Returns room for a key, in which all bits are that no key changes. */
  room() {
    const room = new Uint8Array(this.mask.keyBytesMax);
    room.set(this.mask.reference.subarray(0, room.length));
    return room;
  }

  /**
   * Reads a word, and puts its bits into a key. Returns false if it has bits that no word has.
   * @param {DataView} view
   * @param {number} at
   * @param {number} wordBytes
   * @param {Uint8Array} key
   */
  take(view, at, wordBytes, key) {
    const { word, spare } = this;
    let other = 0;
    for (let part = 0; 4 * part < wordBytes; part++) {
      word[part] = view.getUint32(at + 4 * part, true);
      other |= word[part] & spare[part];
    }
    const { at: places, kept, fixed, ones, bit } = this.own;
    for (let number = 0; number < places.length; number++) {
      const first = bit[number];
      const shift = first & 31;
      const bits = (word[first >>> 5] >>> shift) | ((word[(first >>> 5) + 1] << 1) << (31 - shift));
      key[places[number]] = fixed[number] | SPREAD[kept[number] * 256 + (bits & ones[number])];
    }
    return other === 0;
  }

  /** The length of a key whose word, a whole key, was read last. */
  length() {
    const { keyBytesMax, lengthMask } = this.mask;
    return (keyBytesMax & ~lengthMask) | (this.word[0] & lengthMask);
  }

  /**
   * Puts a tail into a key. Returns the length of the key; -1 if the tail has bits that none has.
   * @param {Uint8Array} tail
   * @param {number} from its place in these bytes
   * @param {Uint8Array} key
   */
  takeTail(tail, from, key) {
    const { mask, lengthBit, tailBits } = this;
    const { at: places, kept, fixed, ones, bit } = this.tail;
    for (let number = 0; number < places.length; number++) {
      const byte = from + (bit[number] >>> 3);
      const bits = (tail[byte] | (tail[byte + 1] << 8)) >>> (bit[number] & 7);
      key[places[number]] = fixed[number] | SPREAD[kept[number] * 256 + (bits & ones[number])];
    }
    let byte = from + (tailBits >>> 3);
    const end = from + mask.tailBytes;
    let other = byte < end ? tail[byte] >>> (tailBits & 7) : 0;
    for (byte += 1; byte < end; byte++) {
      other |= tail[byte];
    }
    byte = from + (lengthBit >>> 3);
    const bits = (tail[byte] | (tail[byte + 1] << 8) | (tail[byte + 2] << 16)) >>> (lengthBit & 7);
    return other === 0 ? (mask.keyBytesMax & ~mask.lengthMask) | (bits & mask.lengthMask) : -1;
  }

  /**
   * Reports whether a key that was put together so has nothing behind its end.
   * @param {Uint8Array} key
   * @param {number} length
   */
  isOver(key, length) {
    for (let at = length; at < key.length; at++) {
      if ((key[at] & this.behind[at]) !== 0) {
        return false;
      }
    }
    return true;
  }
}
