/**
 * Checks of META, and of what it promises of the tuples: intervals, records, keys that are shorter.
 */
import { APPROXIMATE } from '../header.js';
import { approximateOf, isAlwaysApproximate, meaningOf, numberOfBytes } from '../logical.js';
import { readMeta, walkMeta } from '../meta.js';
import { readRecord } from '../record.js';
import { encodeFloat } from '../types.js';
import { ColumnReader } from './columns.js';
import { LineReader } from './trees.js';
import { Stream } from './reader.js';

/**
 * @typedef {import('./reader.js').Job} Job
 * @typedef {import('../header.js').Header} Header
 */

/** Text of a file, for people. @param {string} text */
const shown = (text) => JSON.stringify(text.slice(0, 80));

/** Reads the section. @param {Job} job @param {Header} header */
async function bytesOf(job, header) {
  const section = header.find('META');
  return section ? job.source.read(section.offset, section.length) : new Uint8Array(0);
}

/**
 * The fields that META gives to values.
 * @param {Job} job
 * @param {Header} header
 */
export async function fieldsOf(job, header) {
  return readRecord(readMeta(await bytesOf(job, header)).valueLogical, header.valueType.name);
}

/**
 * @param {Job} job
 * @param {Header} header
 */
export async function checkMeta(job, header) {
  const section = header.find('META');
  const bytes = await bytesOf(job, header);
  const start = section?.offset ?? 0;
  if (section) {
    const records = walkMeta(bytes, (at, text) => {
      job.rule('meta', 'META', start + at, 8, 'whole records', 'other bytes', text);
    });
    if (records === null) {
      return;
    }
    if (records !== section.elements) {
      job.rule('meta', 'META', start, 8, section.elements, records, 'the table must count the records');
    }
  }
  const meta = readMeta(bytes);
  if (meta.interval !== '' && !areIntervals(header, meta)) {
    const text = 'values of intervals must be records that begin with a key';
    job.rule('meta', 'META', start, 8, 'inclusive', shown(meta.interval), text);
  }
  checkApproximate(job, header, meta, start);
  const logical = meta.valueLogical;
  if (logical.startsWith('record<') && !readRecord(logical, header.valueType.name)) {
    const wanted = `the fields of a ${header.valueType.name} value`;
    job.rule('meta', 'META', start, 8, wanted, shown(logical), 'a record must fit its values');
  }
}

/**
 * @param {Job} job
 * @param {Header} header
 * @param {import('../meta.js').Meta} meta
 * @param {number} start
 */
function checkApproximate(job, header, meta, start) {
  const meaning = meaningOf(meta.keyLogical, header.keyType.name);
  const says = approximateOf(meaning, meta.approximate, header.tuples) !== null;
  const isFlagged = (header.readerFeatures & APPROXIMATE) !== 0n;
  if (isFlagged !== says || (meta.approximate !== '') !== says || (isAlwaysApproximate(meaning) && !says)) {
    const wanted = 'the number of different keys, with the feature, for keys that are shorter';
    job.rule('meta', 'META', start, 8, wanted, shown(meta.approximate), 'approximate keys must be told as such');
  }
}

const FIELD_KINDS = new Map([
  ['u32', 'u32'],
  ['u64', 'u64'],
  ['i32', 'i32'],
  ['i64', 'i64'],
  ['f64', 'f64'],
  ['u128', 'bytes16'],
]);

/**
 * The encoding of the end of an interval, which stands first in its value.
 * @param {string} keyType
 * @param {Uint8Array} value
 */
function endOf(keyType, value) {
  if (keyType === 'u128') {
    return value.length < 16 ? 0n : numberOfBytes(value.subarray(0, 16));
  }
  const bytes = keyType.endsWith('32') ? 4 : 8;
  if (value.length < bytes) {
    return 0n;
  }
  const number = numberOfBytes(value.slice(0, bytes).reverse());
  if (keyType === 'f64') {
    return encodeFloat(number);
  }
  return keyType.startsWith('i') ? number ^ (1n << BigInt(8 * bytes - 1)) : number;
}

/**
 * Reports whether values can be the ends of intervals.
 * @param {Header} header
 * @param {import('../meta.js').Meta} meta
 */
function areIntervals({ keyType, valueType }, meta) {
  const record = readRecord(meta.valueLogical, valueType.name);
  const kind = FIELD_KINDS.get(keyType.name);
  return meta.interval === 'inclusive' && record !== null && kind !== undefined && record.fields[0].kind === kind;
}

/**
 * Checks the intervals of some tuples, if the file has intervals.
 * @param {Job} job
 * @param {Header} header
 * @param {number} from
 * @param {number} to
 */
export async function checkIntervals(job, header, from, to) {
  const bytes = await bytesOf(job, header);
  const meta = readMeta(bytes);
  if (walkMeta(bytes, () => {}) === null || !areIntervals(header, meta)) {
    return;
  }
  const { keyType, valueType, short, tuples, valueBytes, valuesAt, lineTuples } = header;
  const lines = new LineReader(job.pages, header);
  const values = valueType.isBytes && header.values ? new ColumnReader(job, 'VALS', header.values) : null;
  const codes = new Stream(job.pages);
  /** @param {number} rank */
  const keyOf = (rank) => {
    const word = lines.word(rank);
    return short ? short.key(word) : word;
  };
  /** @param {number} rank @returns {[number, Uint8Array]} */
  const headOf = (rank) => {
    if (!values) {
      const at = lines.line(rank) + valuesAt + (rank % lineTuples) * valueBytes;
      const offset =
        header.line.offset + 64 * Math.floor(rank / lineTuples) + valuesAt + (rank % lineTuples) * valueBytes;
      return [offset, lines.stream.bytes.slice(at, at + valueBytes)];
    }
    let element = rank;
    if (header.codes) {
      const width = header.codes.shape.elementBytes;
      element = codes.number(header.codes.offset + rank * width, width);
    }
    if (element >= values.shape.elements) {
      return [values.place(0), new Uint8Array(0)];
    }
    const [from, to] = values.bounds(element);
    const end = Math.min(to, values.shape.dataBytes);
    const length = Math.min(Math.max(end - from, 0), keyType.bytes);
    return [values.place(from), length > 0 ? values.data.slice(values.place(from), length) : new Uint8Array(0)];
  };
  await job.each(from, to, (rank) => {
    const key = keyOf(rank);
    const [at, head] = headOf(rank);
    const last = endOf(keyType.name, head);
    const next = rank + 1 < tuples ? keyOf(rank + 1) : null;
    const isEarly = last < key;
    if (isEarly || (next !== null && last >= next)) {
      const text = isEarly
        ? 'an interval must not end before it starts'
        : 'an interval must end before the next one starts';
      const expected = isEarly ? `at least ${key}` : `below ${next}`;
      job.rule('interval', values ? 'VALS' : 'LINE', at, keyType.bytes, expected, last, text);
    }
  });
}
