/**
 * Blocks of 8 KiB on demand: read in runs, verified by their sums, and kept in a bounded cache.
 *
 * A sum is itself in a block of SUMS, which is verified by SUM2, whose sum is in the section table. So nothing is
 * believed that the head of the file does not vouch for.
 */
import { Binding, crc32 } from './crc.js';
import { Damage } from './error.js';
import { BLOCK_BYTES } from './header.js';

/** Most bytes of a read. */
const RUN_BYTES = 1 << 20;
/** SUMS is read as a whole, together with SUM2, if both have no more bytes than this. */
const SUMS_BYTES_MAX = 128 << 10;
/** Blocks of a section are numbered below this. */
const SECTION_BLOCKS = 2 ** 44;

/** @typedef {import('./header.js').Section} Section */

export class Blocks {
  /**
   * @param {{read(offset: number, length: number): Promise<Uint8Array>}} source
   * @param {import('./header.js').Header} header
   * @param {{verify?: boolean, cacheBytes?: number}} [options]
   */
  constructor(source, header, options = {}) {
    this.source = source;
    this.header = header;
    this.isVerified = options.verify ?? true;
    this.most = Math.max(Math.floor((options.cacheBytes ?? 16 << 20) / BLOCK_BYTES), 64);
    /** @type {Map<number, Uint8Array>} the block that was used last comes last */
    this.cache = new Map();
    /** @type {Map<number, Promise<Uint8Array>>} blocks on their way */
    this.coming = new Map();
    /** @type {Promise<Uint8Array> | null} */
    this.sum2 = null;
    /** @type {{offset: number, bytes: Uint8Array} | null} bytes that were read when the file was opened */
    this.early = null;
    /** @type {Map<string, Binding>} */
    this.bindings = new Map();
  }

  /**
   * Returns bytes of a section, counted from its first one.
   * @param {Section} section
   * @param {number} at
   * @param {number} length
   * @returns {Promise<Uint8Array>}
   */
  async bytes(section, at, length) {
    if (length === 0) {
      return new Uint8Array(0);
    }
    const extent = section.end - section.offset;
    if (!(at >= 0 && at + length <= extent)) {
      throw new Damage('header', section.tag, section.offset, `bytes ${at} to ${at + length} are not in the section`);
    }
    const first = Math.floor(at / BLOCK_BYTES);
    const last = Math.floor((at + length - 1) / BLOCK_BYTES);
    const start = at - first * BLOCK_BYTES;
    if (first === last) {
      const block = this.held(section, first) ?? (await Promise.all(this.run(section, first, first)))[0];
      return block.subarray(start, start + length);
    }
    const blocks = await Promise.all(this.run(section, first, last));
    const whole = new Uint8Array(length);
    let to = 0;
    blocks.forEach((block, number) => {
      const part = block.subarray(
        number === 0 ? start : 0,
        Math.min(block.length, (number === 0 ? start : 0) + length - to),
      );
      whole.set(part, to);
      to += part.length;
    });
    return whole;
  }

  /**
   * @param {Section} section
   * @param {number} block
   */
  held(section, block) {
    const key = section.index * SECTION_BLOCKS + block;
    const found = this.cache.get(key);
    if (found) {
      this.cache.delete(key);
      this.cache.set(key, found);
    }
    return found;
  }

  /**
   * Returns blocks that are here, on their way, or asked for now: neighbours in one read.
   * @param {Section} section
   * @param {number} first
   * @param {number} last
   */
  run(section, first, last) {
    /** @type {(Uint8Array | Promise<Uint8Array>)[]} */
    const blocks = [];
    let at = first;
    while (at <= last) {
      const here = this.here(section, at);
      if (here) {
        blocks.push(here);
        at += 1;
        continue;
      }
      let end = at + 1;
      while (end <= last && (end - at) * BLOCK_BYTES < RUN_BYTES && !this.here(section, end)) {
        end += 1;
      }
      blocks.push(...this.ask(section, at, end));
      at = end;
    }
    return blocks;
  }

  /**
   * @param {Section} section
   * @param {number} block
   */
  here(section, block) {
    return this.held(section, block) ?? this.coming.get(section.index * SECTION_BLOCKS + block);
  }

  /**
   * @param {Section} section
   * @param {number} first
   * @param {number} end
   */
  ask(section, first, end) {
    const read = this.fetch(section, first, end);
    /** @type {Promise<Uint8Array>[]} */
    const promises = [];
    for (let block = first; block < end; block++) {
      const key = section.index * SECTION_BLOCKS + block;
      const one = read.then(
        (blocks) => {
          this.coming.delete(key);
          this.keep(key, blocks[block - first]);
          return blocks[block - first];
        },
        (error) => {
          this.coming.delete(key);
          throw error;
        },
      );
      this.coming.set(key, one);
      promises.push(one);
    }
    return promises;
  }

  /**
   * @param {number} key
   * @param {Uint8Array} block
   */
  keep(key, block) {
    this.cache.set(key, block);
    for (const oldest of this.cache.keys()) {
      if (this.cache.size <= this.most) {
        break;
      }
      this.cache.delete(oldest);
    }
  }

  /**
   * @param {number} offset
   * @param {number} length
   */
  async raw(offset, length) {
    const { early } = this;
    if (early && offset >= early.offset && offset + length <= early.offset + early.bytes.length) {
      return early.bytes.slice(offset - early.offset, offset - early.offset + length);
    }
    return this.source.read(offset, length);
  }

  /**
   * Reads and verifies blocks.
   * @param {Section} section
   * @param {number} first
   * @param {number} end
   * @returns {Promise<Uint8Array[]>}
   */
  async fetch(section, first, end) {
    const offset = section.offset + first * BLOCK_BYTES;
    const length = Math.min(end * BLOCK_BYTES, section.end - section.offset) - first * BLOCK_BYTES;
    const [bytes, sums] = await Promise.all([
      this.raw(offset, length),
      this.isVerified && section.tag !== 'SUM2' ? this.sumsOf(section, first, end) : null,
    ]);
    const blocks = [];
    for (let block = first; block < end; block++) {
      const at = (block - first) * BLOCK_BYTES;
      // A copy, so that a block that is kept does not keep its neighbours.
      const one = bytes.slice(at, at + BLOCK_BYTES);
      if (sums && this.boundSum(section, block, one) !== sums[block - first]) {
        throw new Damage('block', section.tag, offset + at, `block ${block} does not match its sum`);
      }
      blocks.push(one);
    }
    return blocks;
  }

  /**
   * Returns the sum that is stored for such a block.
   * @param {Section} section
   * @param {number} block
   * @param {Uint8Array} bytes
   */
  boundSum(section, block, bytes) {
    let binding = this.bindings.get(section.tag);
    if (!binding) {
      binding = new Binding(this.header.fileId, section.tagBytes);
      this.bindings.set(section.tag, binding);
    }
    return (crc32(bytes) ^ binding.of(block)) >>> 0;
  }

  /**
   * @param {Section} section
   * @param {number} first
   * @param {number} end
   */
  async sumsOf(section, first, end) {
    const { sums, sum2 } = this.header;
    let list;
    if (section === sums) {
      const bytes = await this.sumsOfSums();
      list = bytes.subarray(section.sumsOffset - sum2.offset + 4 * first, section.sumsOffset - sum2.offset + 4 * end);
    } else {
      if (!this.sum2) {
        await this.sumsOfSums();
      }
      list = await this.bytes(sums, section.sumsOffset - sums.offset + 4 * first, 4 * (end - first));
    }
    const view = new DataView(list.buffer, list.byteOffset, list.length);
    return Array.from({ length: end - first }, (_, at) => view.getUint32(4 * at, true));
  }

  /** Reads SUM2, once, and SUMS with it where that is small. */
  sumsOfSums() {
    this.sum2 ??= this.readSum2().catch((error) => {
      this.sum2 = null;
      throw error;
    });
    return this.sum2;
  }

  async readSum2() {
    const { sums, sum2 } = this.header;
    const both = sum2.end - sums.offset;
    const isTogether = sum2.index === sums.index + 1 && both <= SUMS_BYTES_MAX;
    const start = isTogether ? sums.offset : sum2.offset;
    const bytes = await this.raw(start, sum2.end - start);
    const own = bytes.subarray(sum2.offset - start);
    if (crc32(own) !== sum2.sumsCrc) {
      throw new Damage('sums', 'SUM2', sum2.offset, 'the sums of sums do not match the sum in the section table');
    }
    if (isTogether) {
      this.keepSums(bytes.subarray(0, sums.end - sums.offset), own);
    }
    return own;
  }

  /**
   * @param {Uint8Array} bytes SUMS
   * @param {Uint8Array} own SUM2
   */
  keepSums(bytes, own) {
    const { sums, sum2 } = this.header;
    const view = new DataView(own.buffer, own.byteOffset + sums.sumsOffset - sum2.offset);
    for (let block = 0; block * BLOCK_BYTES < bytes.length; block++) {
      const one = bytes.slice(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
      if (this.boundSum(sums, block, one) !== view.getUint32(4 * block, true)) {
        throw new Damage('block', 'SUMS', sums.offset + block * BLOCK_BYTES, `block ${block} does not match its sum`);
      }
      this.keep(sums.index * SECTION_BLOCKS + block, one);
    }
  }
}
