/**
 * Checks of PACK, the compressed key column, against the tuple lines.
 */
import { put } from './numbers.js';
import { Stream, areEqual } from './reader.js';
import { LineReader } from './trees.js';

/**
 * @typedef {import('./reader.js').Job} Job
 * @typedef {import('../header.js').Header} Header
 */

/**
 * Checks some pages of PACK. All parts walk over the records, since places follow from widths; the first reports.
 * @param {Job} job
 * @param {Header} header
 * @param {number} from
 * @param {number} to
 */
export async function checkPacked(job, header, from, to) {
  if (!header.packed) {
    return;
  }
  const { offset, shape } = header.packed;
  const records = new Stream(job.pages);
  if (from === 0) {
    await job.zeros('PACK', offset + 16 * shape.pages, offset + shape.dataAt);
    const guard = offset + shape.dataAt + shape.dataBytes;
    await job.zeros('PACK', guard, guard + 64);
  }
  /** @param {Parameters<Job['rule']>} fault */
  const rule = (...fault) => (from === 0 ? job.rule(...fault) : undefined);
  let place = 0;
  let isOver = false;
  /** @param {number} page */
  const recordOf = (page) => {
    const at = records.at(offset + 16 * page, 16);
    const low = records.view.getUint32(at + 8, true);
    const high = records.view.getUint32(at + 12, true);
    return { place: low + (high & 0xffffff) * 2 ** 32, width: high >>> 24, base: records.view.getBigUint64(at, true) };
  };
  await job.each(0, shape.pages, (page) => {
    const record = recordOf(page);
    if (!isOver && (record.place !== place || record.width > 64)) {
      isOver = true;
      const [before, found] = [Math.max(page - 1, 0), `place ${record.place}, width ${record.width}`];
      const text = 'pages must follow each other';
      rule('packed', 'PACK', offset + 16 * before, 16 * (page + 1 - before), `place ${place}`, found, text);
    }
    place += 128 * record.width;
  });
  if (isOver) {
    return;
  }
  if (place !== shape.dataBytes) {
    rule('packed', 'PACK', offset, shape.dataAt, shape.dataBytes, place, 'pages must fill the section');
    return;
  }
  const lines = new LineReader(job.pages, header);
  const data = new Stream(job.pages);
  await job.each(
    from,
    to,
    (page) => {
      const record = recordOf(page);
      const at = offset + shape.dataAt + record.place;
      const found = data.slice(at, 128 * record.width);
      const expected = packedPage(lines, page, header.tuples);
      const keys = `keys ${1024 * page} and on`;
      if (expected && (expected.base !== record.base || expected.width !== record.width)) {
        job.rule('packed', 'PACK', offset + 16 * page, 16, keys, 'others', 'a record must be that of its keys');
      } else if (!expected || !areEqual(expected.bytes, found)) {
        job.rule('packed', 'PACK', at, 128 * record.width, keys, 'others', 'a page must hold the keys of its tuples');
      }
    },
    { weight: shape.dataBytes / shape.pages },
  );
}

/**
 * The page that follows from the tuple lines; null if their keys do not ascend.
 * @param {LineReader} lines
 * @param {number} page
 * @param {number} tuples
 */
function packedPage(lines, page, tuples) {
  const { lineTuples, wordBytes } = lines.header;
  const first = 1024 * page;
  const count = Math.min(tuples - first, 1024);
  const [lows, highs] = [new Uint32Array(count), new Uint32Array(count)];
  for (let at = 0; at < count; at++) {
    const place = lines.line(first + at) + ((first + at) % lineTuples) * wordBytes;
    lows[at] = lines.stream.view.getUint32(place, true);
    highs[at] = wordBytes === 8 ? lines.stream.view.getUint32(place + 4, true) : 0;
    if (at > 0 && (highs[at] < highs[at - 1] || (highs[at] === highs[at - 1] && lows[at] < lows[at - 1]))) {
      return null;
    }
  }
  const [baseLow, baseHigh] = [lows[0], highs[0]];
  for (let at = 0; at < count; at++) {
    const isBorrowed = lows[at] < baseLow ? 1 : 0;
    highs[at] = highs[at] - baseHigh - isBorrowed;
    lows[at] -= baseLow;
  }
  const [spanLow, spanHigh] = [lows[count - 1], highs[count - 1]];
  const width = spanHigh > 0 ? 64 - Math.clz32(spanHigh) : 32 - Math.clz32(spanLow);
  const parts = new Uint32Array(32 * width + 2);
  for (let at = 0; at < count; at++) {
    put(parts, at * width, lows[at], Math.min(width, 32));
    put(parts, at * width + 32, highs[at], Math.max(width - 32, 0));
  }
  const base = (BigInt(baseHigh) << 32n) | BigInt(baseLow);
  return { base, width, bytes: new Uint8Array(parts.buffer, 0, 128 * width) };
}
