/**
 * Checks of sums: the lists, every block of every section, and the file id that follows from all of them.
 */
import { Binding, crc32 } from '../crc.js';
import { BLOCK_BYTES } from '../header.js';
import { hexText } from '../logical.js';
import { SipHash } from '../sip.js';
import { firstNonZero } from './reader.js';

/**
 * @typedef {import('./reader.js').Job} Job
 * @typedef {import('../header.js').Header} Header
 * @typedef {import('../header.js').Section} Section
 */

/** Bytes that are read at once: whole blocks, lines and groups of lines. */
const PIECE_BYTES = 2 << 20;

/** @param {number} sum */
const shown = (sum) => `sum ${sum.toString(16).padStart(8, '0')}`;

/** @param {Job} job @param {Header} header */
export async function checkLists(job, header) {
  for (const section of header.sections) {
    const isLast = section.tag === 'SUM2';
    const offset = isLast ? section.offset : section.sumsOffset;
    const length = isLast ? section.end - section.offset : 4 * section.sums;
    let sum = 0;
    await job.pieces(offset, length, PIECE_BYTES, (_, bytes) => {
      sum = crc32(bytes, 0, bytes.length, sum);
    });
    if (sum !== section.sumsCrc) {
      const text = 'a list of sums must match the sum in the table';
      const [expected, found] = [shown(section.sumsCrc), shown(sum)];
      job.add(job.sums, { code: 'sums', section: section.tag, offset, length, expected, found, text });
    }
  }
}

/**
 * Checks the sums and the padding of some blocks of a section. Bytes are passed on, with their place in the section.
 * @param {Job} job
 * @param {Header} header
 * @param {Section} section
 * @param {number} from
 * @param {number} to
 * @param {(at: number, bytes: Uint8Array) => Promise<void>} [take]
 */
export async function checkBlocks(job, header, section, from, to, take) {
  const binding = new Binding(header.fileId, section.tagBytes);
  const start = from * BLOCK_BYTES;
  const length = Math.min(to * BLOCK_BYTES, section.end - section.offset) - start;
  const list = await job.source.read(section.sumsOffset + 4 * from, 4 * (to - from));
  const sums = new DataView(list.buffer, list.byteOffset, list.length);
  await job.pieces(section.offset + start, length, PIECE_BYTES, async (inside, bytes) => {
    const at = start + inside;
    const count = Math.ceil(bytes.length / BLOCK_BYTES);
    const first = at / BLOCK_BYTES;
    for (let block = 0; block < count; block++) {
      const end = Math.min((block + 1) * BLOCK_BYTES, bytes.length);
      const sum = (crc32(bytes, block * BLOCK_BYTES, end) ^ binding.of(first + block)) >>> 0;
      const stored = sums.getUint32(4 * (first + block - from), true);
      if (sum !== stored) {
        const offset = section.offset + at + block * BLOCK_BYTES;
        const text = `block ${first + block} must match its sum`;
        const length = end - block * BLOCK_BYTES;
        const [expected, found] = [shown(stored), shown(sum)];
        job.add(job.sums, { code: 'block', section: section.tag, offset, length, expected, found, text });
      }
    }
    job.blocks += count;
    const content = Math.min(Math.max(section.length - at, 0), bytes.length);
    const bad = firstNonZero(bytes, content, bytes.length);
    if (bad >= 0) {
      job.rule('padding', section.tag, section.offset + at + bad, 1, 0, bytes[bad], 'padding must be zero');
    }
    await take?.(at, bytes);
    job.advance(bytes.length);
  });
}

/** @param {Job} job @param {Header} header */
export async function checkFileId(job, header) {
  const hash = new SipHash();
  hash.write(new TextEncoder().encode('pleach file id 0'));
  hash.write(header.head.subarray(88, 92));
  hash.write(header.head.subarray(100, 104));
  hash.write(header.head.subarray(80, 88));
  for (const section of header.sections) {
    if (section.tag === 'SUMS' || section.tag === 'SUM2') {
      continue;
    }
    const binding = new Binding(header.fileId, section.tagBytes);
    hash.write(section.entry.subarray(0, 8));
    hash.write(section.entry.subarray(16, 32));
    hash.write(section.entry.subarray(56, 120));
    let block = 0;
    await job.pieces(section.sumsOffset, 4 * section.sums, PIECE_BYTES, (_, list) => {
      const view = new DataView(list.buffer, list.byteOffset, list.length);
      for (let at = 0; at < list.length; at += 4) {
        view.setUint32(at, view.getUint32(at, true) ^ binding.of(block), true);
        block += 1;
      }
      hash.write(list);
    });
  }
  const found = hexText(hash.finish());
  const stored = hexText(header.fileId);
  if (found !== stored) {
    job.rule('file-id', 'superblock', 48, 16, found, stored, 'the file id must be that of the contents');
  }
}
