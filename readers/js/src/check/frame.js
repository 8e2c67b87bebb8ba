/**
 * Checks of what no search depends on but every writer must obey: marks, flags, places, counts, zero bytes.
 */
import { HEAD_BYTES, MINOR, PAGE_BYTES } from '../header.js';
import { alignUp } from '../shape.js';
import { firstNonZero } from './reader.js';

const LARGE_BYTES = 32 << 20;
/** Sections whose flag follows from their tag. */
const REQUIRED = ['LINE', 'MASK', 'TAIL', 'TEXT', 'CODE', 'SUMS', 'SUM2'];
const SKIPPABLE = ['META', 'SPIN', 'GRID', 'TRIE', 'PACK', 'FAST', 'HARM', 'BTRE'];
const PLAIN = ['META', 'MASK', 'SUMS', 'SUM2'];

/**
 * @typedef {import('./reader.js').Job} Job
 * @typedef {import('../header.js').Header} Header
 */

/**
 * Where a section must begin.
 * @param {string} tag
 * @param {number} end of the section before it
 * @param {number} length
 */
function startOf(tag, end, length) {
  if (length < LARGE_BYTES || tag === 'SUMS' || tag === 'SUM2') {
    return alignUp(end, 4096);
  }
  return alignUp(end, tag === 'FAST' ? 2 << 20 : 256 << 10);
}

/**
 * @param {Job} job
 * @param {Header} header
 */
export async function checkFrame(job, header) {
  await checkCopies(job, header);
  checkSuperblock(job, header);
  checkTable(job, header);
  await checkPlaces(job, header);
}

/**
 * Checks that the copies at the end equal the originals.
 * @param {Job} job
 * @param {Header} header
 */
async function checkCopies(job, { head, bytes }) {
  const closing = await job.source.read(bytes - HEAD_BYTES, HEAD_BYTES);
  const copies = [
    ['superblock-copy', 'closing superblock', 0, PAGE_BYTES],
    ['table-copy', 'closing section table', PAGE_BYTES, 0],
  ];
  for (const [code, section, first, copy] of /** @type {[string, string, number, number][]} */ (copies)) {
    for (let at = 0; at < PAGE_BYTES; at++) {
      if (head[first + at] !== closing[copy + at]) {
        const offset = bytes - HEAD_BYTES + copy + at;
        const [expected, found] = [String(head[first + at]), String(closing[copy + at])];
        const text = `the ${section} must equal the first`;
        job.add(job.sums, { code, section, offset, length: PAGE_BYTES - at, expected, found, text });
        break;
      }
    }
  }
}

/** @param {Job} job @param {Header} header */
function checkSuperblock(job, header) {
  const { head } = header;
  /** @param {number} from @param {number} to */
  const areZero = (from, to) => firstNonZero(head, from, to) < 0;
  // A higher minor version may give them a meaning.
  if (header.minor <= MINOR && !(areZero(20, 24) && areZero(312, 4092))) {
    const at = areZero(20, 24) ? 312 : 20;
    job.rule('header', 'superblock', at, at === 20 ? 4 : 3780, 'zero', 'other bytes', 'reserved bytes must be zero');
  }
  if (header.generation <= 1n && header.lineage) {
    job.rule('header', 'superblock', 296, 16, 'zero', 'a lineage', 'a first generation comes from no other');
  }
  if (header.tuples === 0 && !areZero(128, 264)) {
    job.rule('min-max', 'superblock', 128, 136, 'zero', 'other bytes', 'an empty file names no keys');
  }
}

/** @param {Job} job @param {Header} header */
function checkTable(job, header) {
  const used = PAGE_BYTES + 128 * header.sections.length;
  if (firstNonZero(header.head, used, HEAD_BYTES) >= 0) {
    const text = 'the table must be zero after its entries';
    job.rule('header', 'section table', used, HEAD_BYTES - used, 'zero', 'other bytes', text);
  }
  const first = header.sections[0].tag;
  if (first !== 'META') {
    job.rule('header', 'section table', PAGE_BYTES, 4, 'META', first, 'META must be the first section');
  }
}

/**
 * The flag that a section must have; null if that is checked elsewhere, or the section is unknown.
 * @param {Header} header
 * @param {string} tag
 */
function flagOf(header, tag) {
  if (REQUIRED.includes(tag)) {
    return 1;
  }
  if (SKIPPABLE.includes(tag)) {
    return 0;
  }
  if (tag === 'VALS') {
    return header.valueType.isBytes ? 1 : 0;
  }
  // The mask decides on KEYS of byte keys.
  return tag === 'KEYS' && !header.keyType.isBytes ? 0 : null;
}

/** @param {Job} job @param {Header} header */
async function checkPlaces(job, header) {
  const { sums } = header;
  let end = HEAD_BYTES;
  let listed = sums.offset;
  const others = header.sections.filter((it) => it.tag !== 'SUMS' && it.tag !== 'SUM2');
  const counts = new Map([
    ['SUMS', others.reduce((all, it) => all + it.sums, 0)],
    ['SUM2', sums.sums],
  ]);
  for (const section of header.sections) {
    const { tag, offset, length, flags, parameters, elements, sumsOffset } = section;
    const at = PAGE_BYTES + 128 * section.index;
    const place = startOf(tag, end, length);
    if (place !== offset) {
      const text = 'a section must start at the first offset that the one before it allows';
      job.rule('header', tag, at + 8, 8, place, offset, text);
    }
    end = offset + length;
    const flag = flagOf(header, tag);
    if (flag !== null && flag !== flags) {
      const text = 'sections that answers depend on are required, others are not';
      job.rule('header', tag, at + 4, 4, flag, flags, text);
    }
    if (PLAIN.includes(tag) && !parameters.areZero(0)) {
      job.rule('header', tag, at + 56, 64, 'zero', 'other bytes', 'this section has no parameters');
    }
    const count = counts.get(tag);
    if (count !== undefined && count !== elements) {
      job.rule('header', tag, at + 24, 8, count, elements, 'the table must count the sums');
    }
    if (tag === 'LINE') {
      await job.zeros(tag, offset + 64 * header.lines, end);
    } else if (tag === 'SUM2') {
      await job.zeros(tag, end, section.end);
    }
    if (tag !== 'SUMS' && tag !== 'SUM2') {
      const wanted = alignUp(listed, 128);
      if (sumsOffset !== wanted) {
        const text = 'lists of sums must follow each other, each aligned';
        job.rule('header', tag, at + 32, 8, wanted, sumsOffset, text);
      } else {
        await job.zeros('SUMS', listed, sumsOffset);
      }
      listed = sumsOffset + 4 * section.sums;
    }
  }
  if (sums.length !== listed - sums.offset) {
    const text = 'a section of sums must end with its last sum';
    job.rule('header', 'SUMS', sums.offset, sums.length, listed - sums.offset, sums.length, text);
  }
}
