/**
 * A check of a whole file: every sum, then every rule.
 *
 * Broken rules are reported only if all sums are right, since one damaged block can break many rules.
 */
import { Refusal } from './error.js';
import { HEAD_BYTES, Header, PAGE_BYTES } from './header.js';
import { readMeta } from './meta.js';
import { readRecord } from './record.js';
import { sourceOf } from './source.js';
import { ColumnCheck } from './check/columns.js';
import { checkFrame } from './check/frame.js';
import { GridCheck } from './check/grid.js';
import { LineCheck, checkSpineLines } from './check/lines.js';
import { checkMeta } from './check/meta.js';
import { Job } from './check/reader.js';
import { checkBlocks, checkFileId, checkLists } from './check/sums.js';
import { TrieCheck, checkText } from './check/text.js';
import { checkBtree, checkFast, checkHarmonia, checkPacked } from './check/trees.js';

/**
 * @typedef {import('./check/reader.js').Finding} Finding
 * @typedef {{verdict: 'clean' | 'damaged' | 'foreign' | 'newer', findings: Finding[], blocks: number, bytes: number,
 *   tuples: number | null}} Report
 */

/** Codes of findings for files that are refused. */
const CODES = new Map([
  ['truncated', 'length'],
  ['extended', 'length'],
  ['superblock-sum', 'superblock'],
  ['table-sum', 'table'],
]);

/**
 * Checks a file. Damage is in the report; an error means that the file could not be read, or that the check was
 * stopped by the signal.
 * @param {unknown} from bytes, a `Blob` or a source
 * @param {{progress?: (done: number, all: number, what: string) => void, signal?: AbortSignal}} [options]
 * @returns {Promise<Report>}
 */
export async function check(from, options = {}) {
  const source = sourceOf(from);
  const job = new Job(source, options);
  const head = await source.read(0, Math.min(HEAD_BYTES, source.bytes));
  const closing = await source.read(Math.max(source.bytes - HEAD_BYTES, 0), Math.min(HEAD_BYTES, source.bytes));
  let header;
  try {
    header = new Header(head, source.bytes);
  } catch (error) {
    if (!(error instanceof Refusal)) {
      throw error;
    }
    return checkRefused(job, head, closing, error);
  }
  await checkAll(job, header, closing);
  return reportOf(job, 'clean', header.tuples);
}

/**
 * @param {Job} job
 * @param {Report['verdict']} verdict
 * @param {number | null} tuples
 * @returns {Report}
 */
function reportOf(job, verdict, tuples) {
  const findings = (job.sums.length > 0 ? job.sums : job.rules).sort((one, other) => one.offset - other.offset);
  const worse = verdict === 'clean' && findings.length > 0 ? 'damaged' : verdict;
  return { verdict: worse, findings, blocks: job.blocks, bytes: job.source.bytes, tuples };
}

/**
 * Reports on a file that is refused. The copies at its end may still give access to the rest.
 * @param {Job} job
 * @param {Uint8Array} head
 * @param {Uint8Array} closing
 * @param {Refusal} refusal
 * @returns {Promise<Report>}
 */
async function checkRefused(job, head, closing, refusal) {
  const { rule, message } = refusal;
  const { bytes } = job.source;
  const code = CODES.get(rule) ?? 'header';
  const isTable = rule === 'table-sum';
  const offset = code === 'length' ? bytes : isTable ? PAGE_BYTES : 0;
  const section = code === 'length' ? 'file' : isTable ? 'section table' : 'superblock';
  job.add(job.sums, {
    code,
    section,
    offset,
    length: PAGE_BYTES,
    expected: `rule ${rule}`,
    found: 'not so',
    text: message,
  });
  if (rule === 'magic') {
    return reportOf(job, 'foreign', null);
  }
  if (rule === 'version' || rule === 'feature' || rule === 'required-section') {
    return reportOf(job, 'newer', null);
  }
  const header = throughCopies(head, closing, bytes);
  if (header) {
    await checkAll(job, header, closing);
  }
  return reportOf(job, 'damaged', header?.tuples ?? null);
}

/**
 * Reads the head from the copies at the end of the file: of the superblock, of the section table, or of both.
 * @param {Uint8Array} head
 * @param {Uint8Array} closing
 * @param {number} bytes
 */
function throughCopies(head, closing, bytes) {
  if (head.length < HEAD_BYTES || closing.length < HEAD_BYTES) {
    return null;
  }
  for (const [block, table] of [
    [true, false],
    [false, true],
    [true, true],
  ]) {
    const repaired = head.slice();
    if (block) {
      repaired.set(closing.subarray(PAGE_BYTES), 0);
    }
    if (table) {
      repaired.set(closing.subarray(0, PAGE_BYTES), PAGE_BYTES);
    }
    try {
      return new Header(repaired, bytes);
    } catch (error) {
      if (!(error instanceof Refusal)) {
        throw error;
      }
    }
  }
  return null;
}

/**
 * Checks that the copies at the end equal the originals.
 * @param {Job} job
 * @param {Uint8Array} head
 * @param {Uint8Array} closing
 */
function checkCopies(job, head, closing) {
  const { bytes } = job.source;
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

/** Bytes of sections that are read again to check their rules. @param {Header} header */
function bytesOfRules(header) {
  const { tails, keys, values, codes, text, packed, harmonia, btree, fast, spine } = header;
  const columns = [tails, keys, values, codes, text, packed].map((it) => it?.shape.dataBytes ?? 0);
  const others = [harmonia, btree, fast, spine].map((it) => it?.shape.bytes ?? 0);
  return [...columns, ...others].reduce((all, one) => all + one, 0);
}

/**
 * @param {Job} job
 * @param {Header} header
 * @param {Uint8Array} closing
 */
async function checkAll(job, header, closing) {
  job.all += bytesOfRules(header);
  checkCopies(job, header.head, closing);
  job.what = 'frame';
  await checkFrame(job, header);
  await checkLists(job, header);
  for (const section of header.sections) {
    if (section.tag !== 'LINE' && section.tag !== 'SUM2') {
      job.what = `sums of ${section.tag}`;
      await checkBlocks(job, header, section);
    }
  }
  await checkFileId(job, header);
  await checkLines(job, header);
  if (job.sums.length > 0) {
    return;
  }
  await checkSections(job, header);
}

/** @param {Job} job @param {Header} header */
async function checkLines(job, header) {
  job.what = 'tuple lines';
  if (job.sums.length > 0) {
    await checkBlocks(job, header, header.line);
    return;
  }
  const grid = header.grid ? new GridCheck(job, header) : null;
  await grid?.checkPadding();
  const lines = new LineCheck(job, header, grid);
  await checkBlocks(job, header, header.line, (at, bytes) => lines.piece(at, bytes));
  await grid?.finish();
}

/** @param {Job} job @param {Header} header */
async function checkSections(job, header) {
  const section = header.find('META');
  const bytes = section ? await job.source.read(section.offset, section.length) : new Uint8Array(0);
  const record = readRecord(readMeta(bytes).valueLogical, header.valueType.name);
  /** @type {[string, () => Promise<void>][]} */
  const steps = [
    ['columns', () => new ColumnCheck(job, header, record).run()],
    ['TEXT', () => checkText(job, header)],
    [
      'TRIE',
      async () => {
        if (header.trie) {
          await new TrieCheck(job, header).run();
        }
      },
    ],
    ['PACK', () => checkPacked(job, header)],
    ['HARM', () => checkHarmonia(job, header)],
    ['BTRE', () => checkBtree(job, header)],
    ['FAST', () => checkFast(job, header)],
    ['SPIN', () => checkSpineLines(job, header)],
    ['META', () => checkMeta(job, header, bytes)],
  ];
  for (const [what, step] of steps) {
    job.what = what;
    await step();
  }
}
