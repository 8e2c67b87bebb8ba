/**
 * Checks of the mask and of the columns by themselves: guard bytes, offsets, values of any length, codes.
 */
import { Refusal } from '../error.js';
import { hexText } from '../logical.js';
import { Mask } from '../mask.js';
import { isUtf8 } from '../meta.js';
import { checkMask } from '../pleach.js';
import { recordFault } from '../record.js';
import { Stream } from './reader.js';

/**
 * @typedef {import('./reader.js').Job} Job
 * @typedef {import('../header.js').Header} Header
 * @typedef {import('../header.js').Placed<import('../shape.js').ColumnShape>} Column
 */

/** Values up to this length are looked at in memory. */
const VALUE_BYTES_MAX = 4 << 20;

/** First bytes of an element, for people. @param {Uint8Array} bytes */
export const shown = (bytes) => hexText(bytes.subarray(0, 64));

/** A column that is read mostly in order. */
export class ColumnReader {
  /**
   * @param {Job} job
   * @param {string} tag
   * @param {Column} column
   */
  constructor(job, tag, column) {
    this.tag = tag;
    this.offset = column.offset;
    this.shape = column.shape;
    this.offsets = new Stream(job.pages);
    this.data = new Stream(job.pages);
  }

  /**
   * Start and end of an element in the data, as they are stored.
   * @param {number} rank
   * @returns {[number, number]}
   */
  bounds(rank) {
    const { elementBytes, offsetBytes } = this.shape;
    if (offsetBytes === 0) {
      return [rank * elementBytes, (rank + 1) * elementBytes];
    }
    const at = this.offset + rank * offsetBytes;
    return [this.offsets.number(at, offsetBytes), this.offsets.number(at + offsetBytes, offsetBytes)];
  }

  /**
   * Reports whether bounds are those of an element.
   * @param {[number, number]} bounds
   */
  isSound([start, end]) {
    return start <= end && end <= this.shape.dataBytes;
  }

  /** Where bytes of the data are in the file. @param {number} at */
  place(at) {
    return this.offset + this.shape.dataAt + at;
  }

  /** @param {[number, number]} bounds */
  bytes([start, end]) {
    return this.data.slice(this.place(start), end - start);
  }

  /** Reports offsets that do not ascend. @param {Job} job @param {number} rank */
  badOffsets(job, rank) {
    const { offsetBytes } = this.shape;
    const at = this.offset + rank * offsetBytes;
    job.rule('column', this.tag, at, 2 * offsetBytes, 'ascending offsets', 'others', 'offsets must ascend');
  }
}

/**
 * Reports an element that is not that of its tuple.
 * @param {Job} job
 * @param {string} tag
 * @param {number} at
 * @param {Uint8Array} found
 * @param {number} rank
 * @param {string} expected
 */
export function badElement(job, tag, at, found, rank, expected) {
  const text = `the element of rank ${rank} must be that of its tuple`;
  job.rule('column', tag, at, found.length, expected, shown(found), text);
}

/**
 * Reads the mask: null without one, undefined if it breaks a rule. Then nothing that depends on it is looked at.
 * @param {Job} job
 * @param {Header} header
 * @returns {Promise<Mask | null | undefined>}
 */
export async function maskOf(job, header) {
  const section = header.find('MASK');
  return section ? readMask(job, header, section, await job.source.read(section.offset, section.length)) : null;
}

/**
 * The same without findings, for the parts of a check after the one that reports them.
 * @param {Job} job
 * @param {Header} header
 */
export async function knownMask(job, header) {
  if (!MASKS.has(header)) {
    job.keep();
    MASKS.set(header, await maskOf(job, header));
    job.drop();
  }
  return MASKS.get(header);
}

/** @type {WeakMap<Header, Mask | null | undefined>} */
const MASKS = new WeakMap();

/**
 * @param {Job} job
 * @param {Header} header
 * @param {import('../header.js').Section} section
 * @param {Uint8Array} bytes
 */
function readMask(job, header, section, bytes) {
  /** @param {unknown} expected @param {unknown} found */
  const wrong = (expected, found) => {
    job.rule('mask', 'MASK', section.offset, section.length, expected, found, 'the mask must be that of the keys');
    return undefined;
  };
  let mask;
  try {
    mask = new Mask(bytes, header.wordBytes);
    checkMask(header, mask);
  } catch (error) {
    if (!(error instanceof Refusal)) {
      throw error;
    }
    return wrong('a mask that goes with the other sections', error.message);
  }
  const needsKeys = !mask.isLossless && mask.tailBytes === 0;
  if (!needsKeys && header.text) {
    return wrong('words that are not whole keys beside a TEXT section', 'words that are');
  }
  const keys = header.find('KEYS');
  if (keys && keys.flags !== (needsKeys ? 1 : 0)) {
    const text = 'KEYS is required where answers depend on it, and only there';
    job.rule('header', 'KEYS', 4096 + 128 * keys.index + 4, 4, needsKeys ? 1 : 0, keys.flags, text);
  }
  if (section.elements !== mask.covered) {
    return wrong(`${mask.covered} covered bytes`, `${section.elements} in the table`);
  }
  return mask.hasKeptReference ? wrong('zeros for kept bits of the reference', 'other bits') : mask;
}

/**
 * Checks the mask, and the columns without their elements.
 * @param {Job} job
 * @param {Header} header
 */
export async function checkColumns(job, header) {
  const { tails, keys, values, codes } = header;
  if ((await maskOf(job, header)) === undefined) {
    return;
  }
  for (const [tag, column] of Object.entries({ TAIL: tails, KEYS: keys, VALS: values, CODE: codes })) {
    if (column) {
      await checkEdges(job, tag, column);
    }
  }
}

/**
 * Checks guard bytes, padding, and the first and the last offset.
 * @param {Job} job
 * @param {string} tag
 * @param {Column} column
 */
async function checkEdges(job, tag, column) {
  const { elements, offsetBytes, dataAt, dataBytes } = column.shape;
  const data = column.offset + dataAt;
  await job.zeros(tag, data + dataBytes, data + dataBytes + 64);
  if (offsetBytes === 0) {
    return;
  }
  const end = (elements + 1) * offsetBytes;
  const reader = new ColumnReader(job, tag, column);
  await job.once(() => {
    const first = reader.offsets.number(column.offset, offsetBytes);
    const last = reader.offsets.number(column.offset + elements * offsetBytes, offsetBytes);
    if (first !== 0 || last !== dataBytes) {
      const [expected, found] = [`0 up to ${dataBytes}`, `${first} up to ${last}`];
      job.rule('column', tag, column.offset, end, expected, found, 'offsets must cover the data');
    }
  });
  await job.zeros(tag, column.offset + end, data);
}

/**
 * Checks values that are byte strings: their offsets must ascend, and each must obey the rule of the type.
 * @param {Job} job
 * @param {Header} header
 * @param {import('../record.js').Record | null} fields
 * @param {number} from
 * @param {number} to
 */
export async function checkValues(job, header, fields, from, to) {
  const column = header.values;
  if (!column || column.shape.offsetBytes === 0 || (await knownMask(job, header)) === undefined) {
    return;
  }
  const reader = new ColumnReader(job, 'VALS', column);
  const isText = header.valueType.name === 'utf8';
  const record = fields?.hasTexts ? fields : null;
  /** @type {{rank: number, start: number, end: number}[]} values that are too long for the cache */
  const long = [];
  /** @param {number} start @param {Uint8Array} value @param {number} rank */
  const checkValue = (start, value, rank) => {
    const fault = record ? recordFault(record, value) : isUtf8(value) ? null : 'valid UTF-8';
    if (fault) {
      badElement(job, 'VALS', reader.place(start), value, rank, fault);
    }
  };
  await job.each(
    from,
    to,
    (rank) => {
      const bounds = reader.bounds(rank);
      if (!reader.isSound(bounds)) {
        reader.badOffsets(job, rank);
      } else if (bounds[1] - bounds[0] > VALUE_BYTES_MAX) {
        long.push({ rank, start: bounds[0], end: bounds[1] });
      } else if (isText || record) {
        checkValue(bounds[0], reader.bytes(bounds), rank);
      }
    },
    { weight: column.shape.dataBytes / column.shape.elements },
  );
  for (const { rank, start, end } of long) {
    if (isText && !(await isLongText(job, reader.place(start), end - start))) {
      badElement(job, 'VALS', reader.place(start), new Uint8Array(0), rank, 'valid UTF-8');
    }
    if (record) {
      checkValue(start, await job.source.read(reader.place(start), end - start), rank);
    }
  }
}

/** @param {Job} job @param {number} offset @param {number} length */
async function isLongText(job, offset, length) {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let isText = true;
  await job.pieces(offset, length, 1 << 20, (at, bytes) => {
    try {
      decoder.decode(bytes, { stream: at + bytes.length < length });
    } catch {
      isText = false;
    }
  });
  return isText;
}

/**
 * Checks that every code is that of a value.
 * @param {Job} job
 * @param {Header} header
 * @param {number} from
 * @param {number} to
 */
export async function checkCodes(job, header, from, to) {
  const { codes, values } = header;
  if (!codes || !values || (await knownMask(job, header)) === undefined) {
    return;
  }
  const stream = new Stream(job.pages);
  const width = codes.shape.elementBytes;
  const most = values.shape.elements;
  await job.each(
    from,
    to,
    (rank) => {
      const at = codes.offset + rank * width;
      const code = stream.number(at, width);
      if (code >= most) {
        const text = `the code of rank ${rank} must be that of a value`;
        job.rule('column', 'CODE', at, width, `below ${most}`, code, text);
      }
    },
    { weight: width },
  );
}
