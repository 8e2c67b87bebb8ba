/**
 * What a check is made of: kinds of parts, each of which looks at a range of blocks, tuples, nodes or pages. A part
 * needs nothing of other parts, so that any thread can run it. What parts have found is joined in their order, which
 * gives the same report however the work was divided.
 */
import { checkCodes, checkColumns, checkValues } from './columns.js';
import { checkFast, fastParts } from './fast.js';
import { checkFrame } from './frame.js';
import { checkCounts } from './grid.js';
import { checkKeys, keysOfUnit, weightOf } from './keys.js';
import { checkLines, checkSpineLines } from './lines.js';
import { checkIntervals, checkMeta, fieldsOf } from './meta.js';
import { checkNumbers } from './numbers.js';
import { checkPacked } from './packed.js';
import { checkBlocks, checkFileId, checkLists } from './sums.js';
import { checkBtree, checkHarmonia } from './trees.js';
import { TrieCheck } from './trie.js';

/**
 * @typedef {import('./reader.js').Job} Job
 * @typedef {import('./reader.js').Finding} Finding
 * @typedef {import('../header.js').Header} Header
 *
 * @typedef {object} Kind
 * @property {string} what is looked at, for people
 * @property {number} count of elements, by which the work is divided; a kind without any has one part
 * @property {number} weight bytes that an element counts for
 * @property {(job: Job, from: number, to: number) => Promise<unknown>} run
 * @property {(job: Job, results: Result[]) => Promise<void>} [join] looks at what all parts returned
 *
 * @typedef {{phase: number, kind: number, from: number, to: number}} Part
 * @typedef {{sums: Finding[], rules: Finding[], later: Finding[], blocks: number, value: any}} Result
 */

/**
 * A kind that is not divided.
 * @param {string} what
 * @param {(job: Job) => Promise<unknown>} run
 * @param {number} [weight]
 * @returns {Kind}
 */
const whole = (what, run, weight = 0) => ({ what, count: 1, weight, run });

/**
 * The kinds of both phases, in their order: what sums need, and what is only looked at if all sums are right.
 * @param {Header} header
 * @returns {[Kind[], Kind[]]}
 */
export function kindsOf(header) {
  return [sumKinds(header), sectionKinds(header)];
}

/** @param {Header} header @returns {Kind[]} */
function sumKinds(header) {
  const blocks = header.sections
    .filter((section) => section.tag !== 'LINE' && section.tag !== 'SUM2')
    .map((section) => ({
      what: `sums of ${section.tag}`,
      count: section.sums,
      weight: section.sums > 0 ? (section.end - section.offset) / section.sums : 0,
      /** @type {Kind['run']} */
      run: (job, from, to) => checkBlocks(job, header, section, from, to),
    }));
  return [
    whole('frame', async (job) => {
      await checkFrame(job, header);
      await checkLists(job, header);
    }),
    ...blocks,
    whole('file id', (job) => checkFileId(job, header)),
    {
      what: 'tuple lines',
      count: header.line.sums,
      weight: (header.line.end - header.line.offset) / Math.max(header.line.sums, 1),
      run: (job, from, to) => checkLines(job, header, from, to),
      join: (job, results) => joinGrid(job, header, results),
    },
  ];
}

/**
 * Keeps the first fault of the grid, behind which the rest of it says nothing, and counts what is in it.
 * @param {Job} job
 * @param {Header} header
 * @param {Result[]} results
 */
async function joinGrid(job, header, results) {
  if (!header.grid) {
    return;
  }
  const first = results.findIndex((result) => result.value.isOver);
  results.forEach((result, at) => {
    result.rules = first >= 0 && at > first ? result.rules.filter((it) => it.code !== 'grid') : result.rules;
  });
  await checkCounts(
    job,
    header,
    results.map((result) => result.value),
  );
}

/** @param {Header} header @returns {Kind[]} */
function sectionKinds(header) {
  const { tuples, values, codes, text, trie, packed, harmonia, btree, spine } = header;
  /** @type {Kind[]} */
  const kinds = [];
  /** @param {string} what @param {number} count @param {number} weight @param {Kind['run']} run */
  const add = (what, count, weight, run) => kinds.push({ what, count, weight, run });
  kinds.push(whole('columns', (job) => checkColumns(job, header)));
  if (values && header.valueType.isBytes) {
    const { elements, dataBytes } = values.shape;
    add('values', elements, dataBytes / Math.max(elements, 1), async (job, from, to) =>
      checkValues(job, header, await fieldsOf(job, header), from, to),
    );
  }
  if (codes) {
    add('codes', tuples, codes.shape.elementBytes, (job, from, to) => checkCodes(job, header, from, to));
  }
  const columns = (header.keyType.isBytes ? 0 : (header.keys?.shape.elementBytes ?? 0)) + header.valueBytes;
  if ((header.keys && !header.keyType.isBytes) || (values && !header.valueType.isBytes)) {
    const weight = 64 + columns * header.lineTuples;
    add('columns', header.lines, weight, (job, from, to) => checkNumbers(job, header, from, to));
  }
  if (header.keyType.isBytes) {
    const units = Math.ceil(tuples / keysOfUnit(header));
    const what = text ? 'TEXT' : 'keys';
    add(what, units, weightOf(header), (job, from, to) => checkKeys(job, header, from, to));
  }
  if (trie) {
    kinds.push(whole('TRIE', (job) => new TrieCheck(job, header).run(), 128 * trie.shape.nodes));
  }
  if (packed) {
    const { pages, dataBytes } = packed.shape;
    add('PACK', pages, dataBytes / Math.max(pages, 1), (job, from, to) => checkPacked(job, header, from, to));
  }
  if (harmonia) {
    const { nodes, strideBytes } = harmonia.shape;
    add('HARM', nodes, strideBytes, (job, from, to) => checkHarmonia(job, header, from, to));
  }
  if (btree) {
    const { nodes, slots, wordBytes } = btree.shape;
    add('BTRE', nodes, slots * wordBytes, (job, from, to) => checkBtree(job, header, from, to));
  }
  if (header.fast) {
    const count = fastParts(header);
    const weight = header.fast.shape.bytes / Math.max(count, 1);
    add('FAST', count, weight, (job, from, to) => checkFast(job, header, from, to));
  }
  if (spine) {
    kinds.push(whole('SPIN', (job) => checkSpineLines(job, header), spine.shape.bytes));
  }
  kinds.push(whole('META', (job) => checkMeta(job, header)));
  if (header.valueType.code !== 0) {
    add('intervals', tuples, 8, (job, from, to) => checkIntervals(job, header, from, to));
  }
  return kinds;
}

/**
 * Divides kinds into parts of about so many bytes.
 * @param {Kind[]} kinds
 * @param {number} phase
 * @param {number} bytes
 * @returns {Part[]}
 */
export function partsOf(kinds, phase, bytes) {
  return kinds.flatMap(({ count, weight }, kind) => {
    const each = Math.ceil(count / Math.max(Math.ceil((count * weight) / bytes), 1));
    /** @type {Part[]} */
    const parts = [];
    for (let from = 0; from < count || parts.length === 0; from += each) {
      parts.push({ phase, kind, from, to: Math.min(from + each, count) });
    }
    return parts;
  });
}

/**
 * Runs a part.
 * @param {Job} job
 * @param {Header} header
 * @param {Part} part
 * @returns {Promise<Result>}
 */
export async function runPart(job, header, { phase, kind, from, to }) {
  const own = kindsOf(header)[phase][kind];
  job.what = own.what;
  const value = await own.run(job, from, to);
  job.advance(Math.max((to - from) * own.weight - job.spent, 0));
  job.tell();
  const { sums, rules, later, blocks } = job;
  return { sums, rules, later, blocks, value: value ?? null };
}
