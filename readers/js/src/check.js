/**
 * A check of a whole file: every sum, then every rule. Its parts can be run by several threads.
 *
 * Broken rules are reported only if all sums are right, since one damaged block can break many rules.
 */
import { Refusal } from './error.js';
import { HEAD_BYTES, Header, PAGE_BYTES } from './header.js';
import { sourceOf } from './source.js';
import { kindsOf, partsOf, runPart } from './check/parts.js';
import { FINDINGS_MAX, Job, areEqual } from './check/reader.js';

/**
 * @typedef {import('./check/reader.js').Finding} Finding
 * @typedef {import('./check/parts.js').Result} Result
 *
 * @typedef {{head: Uint8Array, bytes: number, cacheBytes: number, part: import('./check/parts.js').Part}} Task
 * What a helper is asked for: a part of the check of a file with this head and length.
 *
 * @typedef {(task: Task, advance: (bytes: number, what: string) => void) => Promise<Result>} Helper
 *
 * @typedef {object} Options
 * @property {(done: number, all: number, what: string) => void} [progress]
 * @property {AbortSignal} [signal]
 * @property {Helper[]} [helpers] other threads, each of which calls `checkPart`; this thread works, too
 * @property {number} [partBytes] of a part of the work, with helpers; by itself this follows from the file
 *
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

/** Bytes of a part of the work that is divided. */
const PART_BYTES_MIN = 1 << 20;
const PART_BYTES_MAX = 16 << 20;
/** Bytes of the file that all threads keep, and that each of them keeps at least. */
const CACHE_BYTES = 48 << 20;
const CACHE_BYTES_MIN = 6 << 20;

/**
 * Checks a file. Damage is in the report; an error means that the file could not be read, or that the check was
 * stopped by the signal.
 * @param {unknown} from bytes, a `Blob` or a source
 * @param {Options} [options]
 * @returns {Promise<Report>}
 */
export async function check(from, options = {}) {
  const source = sourceOf(from);
  const whole = new Whole(source, options);
  const head = await source.read(0, Math.min(HEAD_BYTES, source.bytes));
  let header;
  try {
    header = new Header(head, source.bytes);
  } catch (error) {
    if (!(error instanceof Refusal)) {
      throw error;
    }
    return checkRefused(whole, head, error);
  }
  await whole.run(header);
  return reportOf(whole, 'clean', header.tuples);
}

/**
 * Runs a part of the check of a file, as a helper is asked to.
 * @param {unknown} from
 * @param {Task} task
 * @param {{advance?: (bytes: number, what: string) => void, signal?: AbortSignal}} [options]
 */
export async function checkPart(from, { head, bytes, cacheBytes, part }, options = {}) {
  const source = sourceOf(from);
  return runPart(new Job(source, { ...options, cacheBytes }), headerOf(source, head, bytes), part);
}

/** @type {WeakMap<object, Header>} headers of sources, since what follows from them is kept with them */
const HEADERS = new WeakMap();

/** @param {object} source @param {Uint8Array} head @param {number} bytes */
function headerOf(source, head, bytes) {
  let header = HEADERS.get(source);
  if (!header || !areEqual(header.head, head)) {
    header = new Header(head, bytes);
    HEADERS.set(source, header);
  }
  return header;
}

/** A check under way: what its parts have found, and how far they are. */
class Whole {
  /** @param {import('./source.js').Counted} source @param {Options} options */
  constructor(source, options) {
    this.source = source;
    this.options = options;
    /** @type {Finding[]} */
    this.sums = [];
    /** @type {Finding[]} */
    this.rules = [];
    this.blocks = 0;
    this.done = 0;
    this.all = 0;
    /** Stops the parts that this thread runs, where another one has failed. */
    this.stop = new AbortController();
  }

  /** @param {number} bytes @param {string} what */
  advance(bytes, what) {
    this.done += bytes;
    this.options.progress?.(Math.min(this.done, this.all), this.all, what);
  }

  /** Runs all parts of a check. @param {Header} header */
  async run(header) {
    const { signal } = this.options;
    const stop = () => this.stop.abort(signal?.reason);
    signal?.throwIfAborted();
    signal?.addEventListener('abort', stop);
    try {
      const phases = kindsOf(header);
      this.all = phases.flat().reduce((all, kind) => all + kind.count * kind.weight, 0);
      for (const [phase, kinds] of phases.entries()) {
        if (phase === 0 || this.sums.length === 0) {
          await this.runPhase(header, phase, kinds);
        }
      }
    } finally {
      signal?.removeEventListener('abort', stop);
      this.stop.abort();
    }
  }

  /**
   * Runs all parts of a phase, by this thread and its helpers, and joins what they found in the order of the parts.
   * @param {Header} header
   * @param {number} phase
   * @param {import('./check/parts.js').Kind[]} kinds
   */
  async runPhase(header, phase, kinds) {
    const { source, options } = this;
    const helpers = options.helpers ?? [];
    const cacheBytes = Math.max(CACHE_BYTES / (helpers.length + 1), CACHE_BYTES_MIN);
    const own = { signal: this.stop.signal };
    /** @type {Helper[]} */
    const threads = [(task, advance) => checkPart(source, task, { ...own, advance }), ...helpers];
    const most = kinds.reduce((sum, kind) => sum + kind.count * kind.weight, 0);
    const share = Math.min(Math.max(most / (8 * threads.length), PART_BYTES_MIN), PART_BYTES_MAX);
    const parts = partsOf(kinds, phase, helpers.length > 0 ? (options.partBytes ?? share) : Infinity);
    /** @type {Result[]} */
    const results = new Array(parts.length);
    // A kind that is one part would keep a single thread busy at the end.
    const isWhole = parts.map((part) => kinds[part.kind].count === 1);
    const order = [...parts.keys()].sort((one, other) => Number(isWhole[other]) - Number(isWhole[one]));
    let next = 0;
    // A helper that is ended does not answer.
    const stopped = new Promise((_, reject) => {
      this.stop.signal.addEventListener('abort', () => reject(this.stop.signal.reason));
    });
    const all = Promise.all(
      threads.map(async (thread) => {
        while (next < parts.length && !this.stop.signal.aborted) {
          const number = order[next];
          next += 1;
          const task = { head: header.head, bytes: header.bytes, cacheBytes, part: parts[number] };
          results[number] = await thread(task, (bytes, what) => this.advance(bytes, what));
        }
      }),
    );
    await Promise.race([all, stopped]);
    this.stop.signal.throwIfAborted();
    for (const [number, kind] of kinds.entries()) {
      await this.join(
        kind,
        results.filter((_, at) => parts[at].kind === number),
      );
    }
  }

  /**
   * Joins what the parts of a kind have found.
   * @param {import('./check/parts.js').Kind} kind
   * @param {Result[]} results
   */
  async join(kind, results) {
    const job = new Job(this.source, {});
    await kind.join?.(job, results);
    for (const { sums, rules, blocks } of results) {
      this.sums.push(...sums);
      this.rules.push(...rules);
      this.blocks += blocks;
    }
    this.rules.push(...results.flatMap((result) => result.later), ...job.rules);
  }
}

/**
 * @param {Whole} whole
 * @param {Report['verdict']} verdict
 * @param {number | null} tuples
 * @returns {Report}
 */
function reportOf(whole, verdict, tuples) {
  const { blocks, source } = whole;
  const all = whole.sums.length > 0 ? whole.sums : whole.rules;
  const findings = all.sort((one, other) => one.offset - other.offset).slice(0, FINDINGS_MAX);
  const worse = verdict === 'clean' && findings.length > 0 ? 'damaged' : verdict;
  return { verdict: worse, findings, blocks, bytes: source.bytes, tuples };
}

/**
 * Reports on a file that is refused. The copies at its end may still give access to the rest.
 * @param {Whole} whole
 * @param {Uint8Array} head
 * @param {Refusal} refusal
 * @returns {Promise<Report>}
 */
async function checkRefused(whole, head, refusal) {
  const { rule, message } = refusal;
  const { source } = whole;
  const { bytes } = source;
  const code = CODES.get(rule) ?? 'header';
  const isTable = rule === 'table-sum';
  const offset = code === 'length' ? bytes : isTable ? PAGE_BYTES : 0;
  const section = code === 'length' ? 'file' : isTable ? 'section table' : 'superblock';
  const expected = `rule ${rule}`;
  whole.sums.push({ code, section, offset, length: PAGE_BYTES, expected, found: 'not so', text: message });
  if (rule === 'magic') {
    return reportOf(whole, 'foreign', null);
  }
  if (rule === 'version' || rule === 'feature' || rule === 'required-section') {
    return reportOf(whole, 'newer', null);
  }
  const closing = await source.read(Math.max(bytes - HEAD_BYTES, 0), Math.min(HEAD_BYTES, bytes));
  const header = throughCopies(head, closing, bytes);
  if (header) {
    await whole.run(header);
  }
  return reportOf(whole, 'damaged', header?.tuples ?? null);
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
