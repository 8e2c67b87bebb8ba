/**
 * Checks of columns of numbers against the tuple lines, a line at a time. A line that is not plainly right is looked
 * at again, tuple by tuple.
 */
import { ColumnReader, badElement, knownMask, shown } from './columns.js';
import { Stream, areEqual } from './reader.js';

/**
 * @typedef {import('./reader.js').Job} Job
 * @typedef {import('../header.js').Header} Header
 */

/**
 * Puts keys into a column's bytes, which are those of the type, but of 16 bytes most significant byte first.
 */
class Natives {
  /** @param {Header} header */
  constructor(header) {
    const { keyType, short, wordBytes } = header;
    this.size = keyType.bytes;
    this.wordBytes = wordBytes;
    this.isFloat = keyType.name === 'f64';
    this.isSigned = keyType.name.startsWith('i');
    this.runs = (short?.runs ?? []).map((run) => ({ from: Number(run.from), at: Number(run.at), bits: run.bits }));
    this.base = new Uint32Array(4).map((_, part) => Number(((short?.base ?? 0n) >> BigInt(32 * part)) & 0xffffffffn));
    this.isShort = short !== null;
    /** The parts of a word, of the bits that its runs spread, and the bytes of these; lowest first. */
    this.word = new Uint32Array(5);
    this.key = new Uint32Array(5);
    this.bytes = new Uint8Array(16 * 16);
  }

  /**
   * Puts the keys of some words one after the other into `bytes`.
   * @param {DataView} view
   * @param {number} at
   * @param {number} count
   */
  read(view, at, count) {
    const { size, wordBytes, bytes } = this;
    for (let slot = 0; slot < count; slot++) {
      const own = slot * size;
      if (this.isShort) {
        this.spread(view, at + slot * wordBytes);
        for (let byte = 0; byte < size; byte++) {
          bytes[own + byte] = this.key[byte >> 2] >>> (8 * (byte & 3));
        }
      } else {
        for (let byte = 0; byte < size; byte++) {
          bytes[own + byte] = view.getUint8(at + slot * wordBytes + byte);
        }
      }
      this.turn(own);
    }
  }

  /** Makes bytes of the type of those of an encoding. @param {number} at */
  turn(at) {
    const { size, bytes } = this;
    const top = at + size - 1;
    if (this.isFloat && bytes[top] < 128) {
      for (let byte = at; byte <= top; byte++) {
        bytes[byte] ^= 255;
      }
    } else if (this.isFloat || this.isSigned) {
      bytes[top] ^= 128;
    } else if (size === 16) {
      bytes.subarray(at, at + size).reverse();
    }
  }

  /**
   * Puts the encoding of a short word into `key`: its runs of bits, and the base.
   * @param {DataView} view
   * @param {number} at
   */
  spread(view, at) {
    const { word, key, base, runs, wordBytes } = this;
    for (let part = 0; part < wordBytes / 4; part++) {
      word[part] = view.getUint32(at + 4 * part, true);
    }
    key.fill(0);
    for (const run of runs) {
      for (let done = 0; done < run.bits; done += 32) {
        const left = run.bits - done;
        put(key, run.from + done, bitsOf(word, run.at + done, left), Math.min(left, 32));
      }
    }
    let carry = 0;
    for (let part = 0; part < 4; part++) {
      const sum = key[part] + base[part] + carry;
      key[part] = sum;
      carry = sum >= 2 ** 32 ? 1 : 0;
    }
  }
}

/**
 * Up to 32 bits from one on.
 * @param {Uint32Array} parts
 * @param {number} at
 * @param {number} count
 */
function bitsOf(parts, at, count) {
  const [part, shift] = [at >>> 5, at & 31];
  const bits = (parts[part] >>> shift) | ((parts[part + 1] << 1) << (31 - shift));
  return (count >= 32 ? bits : bits & ((1 << count) - 1)) >>> 0;
}

/**
 * Puts bits into numbers of 32 bits that are zero there, the lowest first.
 * @param {Uint32Array} parts
 * @param {number} at
 * @param {number} value
 * @param {number} bits
 */
export function put(parts, at, value, bits) {
  const [part, shift] = [at >>> 5, at & 31];
  parts[part] |= value << shift;
  if (shift + bits > 32) {
    parts[part + 1] |= value >>> (32 - shift);
  }
}

/**
 * Compares the numbers of KEYS and VALS with those of some tuple lines.
 * @param {Job} job
 * @param {Header} header
 * @param {number} from
 * @param {number} to
 */
export async function checkNumbers(job, header, from, to) {
  if ((await knownMask(job, header)) === undefined) {
    return;
  }
  const { line, lineTuples, wordBytes, valuesAt, valueBytes, tuples } = header;
  const lines = new Stream(job.pages);
  const keys = header.keys && !header.keyType.isBytes ? new ColumnReader(job, 'KEYS', header.keys) : null;
  const values = header.values && !header.valueType.isBytes ? new ColumnReader(job, 'VALS', header.values) : null;
  const natives = new Natives(header);
  /**
   * Reports those of some tuples that differ.
   * @param {ColumnReader} column
   * @param {Uint8Array} own
   * @param {number} first
   */
  const report = (column, own, first) => {
    const size = column.shape.elementBytes;
    for (let at = 0; at < own.length; at += size) {
      const [expected, place] = [own.subarray(at, at + size), column.place(first * size + at)];
      const found = column.data.slice(place, size);
      if (!areEqual(expected, found)) {
        badElement(job, column.tag, place, found, first + at / size, shown(expected));
      }
    }
  };
  const columns = (keys ? wordBytes : 0) + (values ? valueBytes : 0);
  await job.each(
    from,
    to,
    (number) => {
      const first = number * lineTuples;
      const used = Math.min(tuples - first, lineTuples);
      const at = lines.at(line.offset + 64 * number, 64);
      if (values) {
        const length = used * valueBytes;
        const own = values.data.at(values.place(first * valueBytes), length);
        if (!isSame(lines.bytes, at + valuesAt, values.data.bytes, own, length)) {
          report(values, lines.bytes.subarray(at + valuesAt, at + valuesAt + length), first);
        }
      }
      if (keys) {
        natives.read(lines.view, at, used);
        const length = used * natives.size;
        const own = keys.data.at(keys.place(first * natives.size), length);
        if (!isSame(natives.bytes, 0, keys.data.bytes, own, length)) {
          report(keys, natives.bytes.subarray(0, length), first);
        }
      }
    },
    { weight: 64 + lineTuples * columns },
  );
}

/**
 * Reports whether so many bytes are the same.
 * @param {Uint8Array} one
 * @param {number} at
 * @param {Uint8Array} other
 * @param {number} own
 * @param {number} length
 */
export function isSame(one, at, other, own, length) {
  for (let byte = 0; byte < length; byte++) {
    if (one[at + byte] !== other[own + byte]) {
      return false;
    }
  }
  return true;
}
