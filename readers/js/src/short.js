/**
 * Short words: the words of numeric keys may keep fewer bits than the type has.
 */

/** @param {number} bits */
const ones = (bits) => (1n << BigInt(bits)) - 1n;

/**
 * @typedef {{word: bigint, isKey: boolean, isEnd: boolean}} Place
 * Where a query belongs: before the first tuple whose word is at least `word`, or behind all tuples. `isKey` says
 * that the query has this word.
 */

export class Short {
  /**
   * @param {number} keyBytes
   * @param {number} wordBytes
   * @param {bigint} base
   * @param {{from: number, bits: number}[]} runs
   */
  constructor(keyBytes, wordBytes, base, runs) {
    this.limit = ones(8 * keyBytes);
    this.base = base;
    this.wordBytes = wordBytes;
    let at = 0;
    this.runs = runs.map((run) => {
      const part = { from: BigInt(run.from), bits: run.bits, at: BigInt(at), mask: ones(run.bits) };
      at += run.bits;
      return part;
    });
    this.most = ones(at);
  }

  /**
   * Reads base and runs of a LINE section; null if they break a rule.
   * @param {import('./shape.js').Parameters} stored
   * @param {number} keyBytes
   * @param {number} wordBytes
   */
  static of(stored, keyBytes, wordBytes) {
    const base = (stored.big(24) << 64n) | stored.big(16);
    const runs = [];
    let kept = 0;
    let end = -1;
    let isOver = false;
    for (let at = 32; at < 40; at += 2) {
      const [from, bits] = stored.bytes.subarray(at, at + 2);
      if (bits === 0) {
        isOver = true;
        if (from !== 0) {
          return null;
        }
        continue;
      }
      if (isOver || from <= end || from + bits > 8 * keyBytes) {
        return null;
      }
      end = from + bits;
      kept += bits;
      runs.push({ from, bits });
    }
    if (runs.length === 0 || kept > 8 * wordBytes || base >> BigInt(8 * keyBytes) !== 0n) {
      return null;
    }
    return new Short(keyBytes, wordBytes, base, runs);
  }

  /** Moves the bits of a word to the places of their runs. @param {bigint} word */
  spread(word) {
    return this.runs.reduce((key, run) => key | (((word >> run.at) & run.mask) << run.from), 0n);
  }

  /** @param {bigint} distance */
  gather(distance) {
    return this.runs.reduce((word, run) => word | (((distance >> run.from) & run.mask) << run.at), 0n);
  }

  /** Returns the encoding of a word's key. @param {bigint} word */
  key(word) {
    return (this.base + this.spread(word)) & this.limit;
  }

  /** Reports whether a word is that of a key of the type. @param {bigint} word */
  holds(word) {
    return word <= this.most && this.base + this.spread(word) <= this.limit;
  }

  /**
   * @param {bigint} key an encoding
   * @returns {Place}
   */
  place(key) {
    if (key < this.base) {
      return { word: 0n, isKey: false, isEnd: false };
    }
    const distance = key - this.base;
    const word = this.gather(distance);
    const other = distance ^ this.spread(word);
    if (other === 0n) {
      return { word, isKey: true, isEnd: false };
    }
    // The highest bit that no run keeps decides: keys that agree above it are smaller.
    const last = this.gather(distance | ones(other.toString(2).length));
    return last < this.most
      ? { word: last + 1n, isKey: false, isEnd: false }
      : { word: last, isKey: false, isEnd: true };
  }
}
