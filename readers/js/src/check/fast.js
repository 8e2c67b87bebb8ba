/**
 * Checks of FAST, the classic tree, against the tuple lines.
 */
import {
  agreedBits,
  LineRun,
  pageOfSlot,
  pageRecord,
  pagedBytes,
  pagedLevels,
  placeOfPage,
  popcount,
  wordInPage,
} from '../classic.js';
import { wordAt } from '../search.js';
import { Stream, areOnes, firstNonZero } from './reader.js';
import { LineReader, farLines } from './trees.js';

/**
 * @typedef {import('./reader.js').Job} Job
 * @typedef {import('../header.js').Header} Header
 */

/** Rank of a slot as a text. @param {number} rank @param {number} tuples */
const slotText = (rank, tuples) => (rank >= 0 && rank < tuples ? `the key of rank ${rank}` : 'free');

/** Number of slots, or of pages in a compressed form, by which the check is divided. @param {Header} header */
export function fastParts(header) {
  const shape = header.fast?.shape;
  return shape ? (shape.form === 0 ? shape.tree.slots : shape.pages) : 0;
}

/** Tuple lines by rank, for nodes that are near to each other and for those that are not. */
class Lines {
  /** @param {Job} job @param {Header} header */
  constructor(job, header) {
    this.near = new LineReader(job.pages, header);
    this.far = farLines(job, header);
    /** Tuples whose lines are kept, so that the nodes of a page may jump among them. */
    this.tuples = (job.pages.bytes * header.lineTuples) / 64 / 4;
  }

  /**
   * Those for a run of nodes.
   * @param {import('../classic.js').PageLevel | null} level
   * @param {LineRun | null} run
   */
  of(level, run) {
    const isSmall = level !== null && level.below === 0 && 2 ** level.levels <= this.tuples;
    return isSmall || run === null || run.step <= 64 ? this.near : this.far;
  }
}

/**
 * Checks some slots of FAST, or some pages of a compressed form.
 * @param {Job} job
 * @param {Header} header
 * @param {number} from
 * @param {number} to
 */
export async function checkFast(job, header, from, to) {
  if (!header.fast) {
    return;
  }
  const { offset, shape } = header.fast;
  const lines = new Lines(job, header);
  if (shape.form !== 0) {
    await new PagedCheck(job, header, lines, from, to).run();
    return;
  }
  const { tree } = shape;
  const { keyBytes } = tree.geometry;
  const slots = new Stream(job.pages);
  /** @type {LineRun | null} */
  let run = null;
  // The first slot of the page, and the slot up to which the run holds.
  let [start, end] = [from, from];
  let own = lines.near;
  await job.each(
    from,
    to,
    (slot) => {
      const at = slots.at(offset + slot * keyBytes, keyBytes);
      if (slot >= end) {
        const place = pageOfSlot(tree, slot);
        run = place ? new LineRun(tree, place.level, place.page, place.inside) : null;
        start = slot - (place?.inside ?? 0);
        end = run ? start + run.end : slot + 1;
        own = lines.of(place?.level ?? null, run);
      }
      const rank = run ? run.index(slot - start) : -1;
      const has = rank >= 0 && rank < header.tuples;
      if (has ? !own.isWord(rank, slots.bytes, at) : !areOnes(slots.bytes, at, at + keyBytes)) {
        const found = wordAt(slots.view, at, keyBytes).toString(16);
        const expected = slotText(rank, header.tuples);
        job.rule('classic', 'FAST', offset + slot * keyBytes, keyBytes, expected, found, 'a slot must hold its key');
      }
    },
    { weight: keyBytes },
  );
  if (to === tree.slots) {
    await job.zeros('FAST', offset + tree.slots * keyBytes, offset + shape.bytes);
  }
}

/**
 * Checks of a compressed tree: the records in order, since places follow from widths, and the words of some pages.
 * Records before these pages are those of another part of the check, which reports them.
 */
class PagedCheck {
  /**
   * @param {Job} job
   * @param {Header} header
   * @param {Lines} lines
   * @param {number} from
   * @param {number} to
   */
  constructor(job, header, lines, from, to) {
    const { offset, shape } = /** @type {import('../header.js').Placed<import('../classic.js').FastShape>} */ (
      header.fast
    );
    this.job = job;
    this.header = header;
    this.offset = offset;
    this.shape = shape;
    this.lines = lines;
    this.from = from;
    this.to = to;
    this.records = new Stream(job.pages);
    this.words = new Stream(job.pages);
    this.end = shape.pagesAt;
  }

  /** @param {number} at @param {number} length @param {unknown} expected @param {unknown} found @param {string} text */
  wrong(at, length, expected, found, text) {
    this.job.rule('classic', 'FAST', this.offset + at, length, expected, found, text);
    return null;
  }

  async run() {
    const { job, shape, offset, from, to } = this;
    if (from === 0) {
      await job.zeros('FAST', offset + shape.pages * shape.recordBytes, offset + shape.pagesAt);
    }
    let number = 0;
    for (const [level, pages] of pagedLevels(shape).entries()) {
      for (let page = 0; page <= pages.last && number < to; page++, number++) {
        /** @type {{record: import('../classic.js').PageRecord, bytes: number} | null} */
        let placed = null;
        await job.once(() => {
          placed = this.placed(level, page);
          if (number < from) {
            job.drop();
          }
        });
        const found = /** @type {{record: import('../classic.js').PageRecord, bytes: number} | null} */ (placed);
        if (!found) {
          return;
        }
        if (number >= from) {
          await job.zeros('FAST', offset + this.end, offset + found.record.place);
          await this.checkPage(level, page, found.record);
        }
        this.end = found.record.place + found.bytes;
      }
    }
    if (to < shape.pages) {
      return;
    }
    if (shape.bytes !== pagedBytes(this.end)) {
      this.wrong(0, shape.bytes, pagedBytes(this.end), shape.bytes, 'length must be that of the pages');
      return;
    }
    await job.zeros('FAST', offset + this.end, offset + shape.bytes);
  }

  /**
   * Returns the record of a page and the page's bytes, if the page is where it must be.
   * @param {number} level
   * @param {number} page
   */
  placed(level, page) {
    const { shape } = this;
    const { keyBytes } = shape.geometry;
    const at = (shape.records[level] + page) * shape.recordBytes;
    const own = this.records.at(this.offset + at, shape.recordBytes);
    const record = pageRecord(this.records.view, own, keyBytes);
    const text = 'a page must have its record';
    const tree = shape.narrow.get(record.width);
    if (!tree) {
      return this.wrong(at, shape.recordBytes, `words of 2 to ${keyBytes} bytes`, record.width, text);
    }
    const most = shape.form === 1 ? 0 : 2 * record.width;
    if (popcount(record.kept) > most) {
      return this.wrong(at, shape.recordBytes, `at most ${most} nibbles`, record.kept.toString(16), text);
    }
    const part = page === tree.pages[level].last ? 1 : 0;
    const bytes = tree.pages[level].slots[part] * record.width;
    const place = placeOfPage(shape, bytes, this.end);
    if (record.place !== place) {
      return this.wrong(at, shape.recordBytes, `place ${place}`, record.place, text);
    }
    if (keyBytes === 16 && firstNonZero(this.records.bytes, own + 21, own + 24) >= 0) {
      return this.wrong(at, shape.recordBytes, 'zeros in reserved bytes', 'others', text);
    }
    if (pagedBytes(place + bytes) > shape.bytes) {
      return this.wrong(
        at,
        shape.recordBytes,
        `at most ${shape.bytes}`,
        place + bytes,
        'pages must end inside the section',
      );
    }
    return { record, bytes };
  }

  /** @param {number} level @param {number} page @param {import('../classic.js').PageRecord} record */
  async checkPage(level, page, record) {
    const { job, header, shape, offset } = this;
    const tree = /** @type {import('../classic.js').Tree} */ (shape.narrow.get(record.width));
    const own = tree.pages[level];
    const lowest = page * 2 ** (own.levels + own.below) + 2 ** own.below - 1;
    const { width } = record;
    const free = (1n << BigInt(8 * width)) - 1n;
    const slots = own.slots[page === own.last ? 1 : 0];
    await job.once(() => {
      const base = lowest < header.tuples ? this.lines.far.word(lowest) : 0n;
      if (base !== record.base) {
        const at = (shape.records[level] + page) * shape.recordBytes;
        const [expected, found] = [base.toString(16), record.base.toString(16)];
        this.wrong(at, shape.recordBytes, expected, found, 'a record must name the smallest key of its page');
      }
    });
    const narrow = header.wordBytes <= 8 ? new NarrowWords(record) : null;
    let run = new LineRun(tree, own, page, 0);
    let lines = this.lines.of(own, run);
    await job.each(
      0,
      slots,
      (slot) => {
        const at = record.place + slot * width;
        const place = this.words.at(offset + at, width);
        if (slot >= run.end) {
          run = new LineRun(tree, own, page, slot);
          lines = this.lines.of(own, run);
        }
        const rank = run.index(slot);
        const has = rank >= 0 && rank < header.tuples;
        if (has && narrow) {
          const line = lines.line(rank) + (rank % header.lineTuples) * header.wordBytes;
          if (narrow.isWord(lines.stream.view, line, header.wordBytes, this.words.view, place)) {
            return;
          }
        } else if (!has && areOnes(this.words.bytes, place, place + width)) {
          return;
        }
        const found = wordAt(this.words.view, place, width);
        const expected = has ? wordInPage(record, lines.word(rank)) : free;
        if (expected !== found) {
          const text = 'a slot must hold the word of its key';
          this.wrong(at, width, expected?.toString(16) ?? 'a key of the page', found.toString(16), text);
        }
      },
      { weight: width },
    );
  }
}

/** Words of a page in the place of keys of up to 8 bytes, without BigInts. */
class NarrowWords {
  /** @param {import('../classic.js').PageRecord} record */
  constructor(record) {
    this.width = record.width;
    this.hasNibbles = record.kept !== 0;
    const agreed = agreedBits(record);
    this.baseLow = lowOf(record.base);
    this.baseHigh = lowOf(record.base >> 32n);
    this.agreedLow = lowOf(agreed);
    this.agreedHigh = lowOf(agreed >> 32n);
    this.nibbles = Int32Array.from({ length: 16 }, (_, at) => 15 - at).filter((at) => (record.kept >>> at) & 1);
  }

  /**
   * Reports whether a word is that of a key.
   * @param {DataView} keys
   * @param {number} at
   * @param {number} keyBytes
   * @param {DataView} words
   * @param {number} place
   */
  isWord(keys, at, keyBytes, words, place) {
    const keyLow = keys.getUint32(at, true);
    const keyHigh = keyBytes === 8 ? keys.getUint32(at + 4, true) : 0;
    let [low, high] = [0, 0];
    if (this.hasNibbles) {
      if (((keyLow ^ this.baseLow) & this.agreedLow) !== 0 || ((keyHigh ^ this.baseHigh) & this.agreedHigh) !== 0) {
        return false;
      }
      for (const nibble of this.nibbles) {
        high = (high << 4) | (low >>> 28);
        low = (low << 4) | (((nibble < 8 ? keyLow : keyHigh) >>> (4 * (nibble & 7))) & 15);
      }
    } else {
      low = keyLow - this.baseLow;
      high = keyHigh - this.baseHigh - (low < 0 ? 1 : 0);
      if (high < 0) {
        return false;
      }
    }
    switch (this.width) {
      case 2:
        return high === 0 && words.getUint16(place, true) === low >>> 0;
      case 4:
        return high === 0 && words.getUint32(place, true) === low >>> 0;
      default:
        return words.getUint32(place, true) === low >>> 0 && words.getUint32(place + 4, true) === high >>> 0;
    }
  }
}

/** The lowest 32 bits. @param {bigint} number */
const lowOf = (number) => Number(number & 0xffffffffn);
