/**
 * What the page asks of a file. It runs in a worker, so that the page stays responsive.
 *
 * A request is `{id, ask, ...}`; the answer is `{id, answer}` or `{id, fault}`.
 */
import { check, checkPart } from '../../readers/js/src/check.js';
import { Damage, Refusal, SourceError } from '../../readers/js/src/error.js';
import { hexText, numberOfBytes } from '../../readers/js/src/logical.js';
import { Pleach } from '../../readers/js/src/pleach.js';
import { HttpSource, sourceOf } from '../../readers/js/src/source.js';
import { ENCODINGS } from '../../readers/js/src/shape.js';
import { helpersOf } from './helpers.js';

/** Milliseconds between two tellings of how far a check is. */
const PROGRESS_MS = 40;
/** Characters of a key or a value that are shown. */
const SHOWN_MAX = 400;
const BUCKETS = 48;
/** Samples of a histogram: of a file at hand, and of one on a server, where each may be a request. */
const SAMPLES = 4096;
const REMOTE_SAMPLES = 64;

const CONTENT = {
  META: 'names',
  LINE: 'tuple lines',
  SPIN: 'spine',
  GRID: 'cells of keys',
  MASK: 'kept bits',
  TAIL: 'rest of keys',
  KEYS: 'key column',
  TEXT: 'keys by page',
  TRIE: 'trie of keys',
  VALS: 'value column',
  CODE: 'value codes',
  PACK: 'packed keys',
  FAST: 'classic tree',
  HARM: "Harmonia's tree",
  BTRE: 'contiguous B+tree',
  SUMS: 'sums',
  SUM2: 'their sums',
};
const ELEMENT = {
  META: 'record',
  LINE: 'tuple',
  SPIN: 'line',
  GRID: 'unit',
  MASK: 'byte',
  TAIL: 'key',
  KEYS: 'key',
  TEXT: 'key',
  TRIE: 'node',
  VALS: 'value',
  CODE: 'tuple',
  PACK: 'key',
  FAST: 'key',
  HARM: 'tuple',
  BTRE: 'tuple',
  SUMS: 'sum',
  SUM2: 'sum',
};

let file = null;
let source = null;
let running = null;

/** @param {string} text */
const cut = (text) => (text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}… (${text.length} characters)` : text);

/** @param {{rank: number, key: any, value: any}} tuple */
const shownTuple = (tuple) => ({
  rank: tuple.rank,
  key: cut(file.formatKey(tuple.key)),
  value: tuple.value === null ? '' : cut(file.formatValue(tuple.value)),
});

/** Facts about the file, from its head and META. */
async function describe() {
  const { header, meta } = file;
  const first = await file.at(0);
  const last = await file.at(file.tuples - 1);
  return {
    bytes: header.bytes,
    version: header.version,
    tuples: file.tuples,
    isUnique: header.isUnique,
    key: { type: file.keyType, name: meta.keyName, logical: file.keyMeaning.name, kind: file.keyMeaning.kind },
    value: {
      type: file.valueType,
      name: meta.valueName,
      logical: file.valueMeaning.name,
      kind: file.valueMeaning.kind,
      isRecord: file.record !== null,
    },
    isInterval: meta.interval !== '',
    distinct: file.approximate?.distinct ?? null,
    generation: String(header.generation),
    fileId: hexText(header.fileId),
    lineage: header.lineage ? hexText(header.lineage) : '',
    builder: header.builder,
    smallest: first ? cut(file.formatKey(first.key)) : '',
    largest: last ? cut(file.formatKey(last.key)) : '',
    sections: header.sections.map((section) => ({
      tag: section.tag,
      content: CONTENT[section.tag] ?? 'unknown',
      element: ELEMENT[section.tag] ?? 'element',
      offset: section.offset,
      length: section.length,
      extent: section.end - section.offset,
      elements: section.elements,
    })),
    search: searchNotes(header),
  };
}

/** How a look-up goes. */
function searchNotes(header) {
  const notes = [
    `${header.lines.toLocaleString('en')} tuple lines of ${header.lineTuples} tuples, ` +
      `words of ${header.wordBytes} bytes`,
  ];
  if (header.spine) {
    const { levels, childLines } = header.spine.shape;
    const own = [...levels]
      .reverse()
      .map((level) => `${level.lines.toLocaleString('en')} × ${ENCODINGS[level.encoding]}`);
    const groups = childLines === 1 ? 'tuple lines' : `groups of ${childLines} tuple lines`;
    const count = levels.length === 1 ? '1 level' : `${levels.length} levels`;
    notes.push(`spine of ${count} above ${groups}${own.length > 0 ? `, from the root: ${own.join(', ')}` : ''}`);
  }
  if (header.grid) {
    const { units, segments, steps } = header.grid.shape;
    const inner = segments > 0 ? `, ${segments.toLocaleString('en')} segments, at most ${steps} on the way` : '';
    notes.push(`grid of ${units.toLocaleString('en')} units of 32 cells${inner}`);
  }
  if (header.trie) {
    const { nodes, levels } = header.trie.shape;
    notes.push(`trie of ${nodes.toLocaleString('en')} nodes, at most ${levels} on the way, above pages of 16 keys`);
  }
  if (header.short) {
    const runs = header.short.runs.map((run) => `${run.bits} bits from bit ${run.from}`);
    notes.push(`short words keep ${runs.join(', ')}; base ${header.short.base.toString(16)} in hexadecimal digits`);
  }
  return notes;
}

/** Reports whether a key is inside of the interval of a tuple. */
function isInInterval(tuple, key) {
  if (file.meta.interval === '' || !file.record) {
    return false;
  }
  const [last] = file.fields(tuple.value);
  return (last instanceof Uint8Array ? numberOfBytes(last) : last) >= key;
}

/** Reads a key; a text that is none is told as such. */
function keyOf(text) {
  const key = file.parseKey(text);
  if (key === null) {
    const { type, logical } = { type: file.keyType, logical: file.keyMeaning.name };
    throw new RangeError(`“${cut(text)}” is not a key of type ${[type, logical].filter(Boolean).join(' ')}`);
  }
  return key;
}

const ASKS = {
  async open({ blob, url, verify }) {
    running?.abort();
    file = null;
    source = url ? await HttpSource.open(url) : sourceOf(blob);
    file = await Pleach.open(source, { verify: verify ?? true });
    return describe();
  },
  async get({ key }) {
    const started = performance.now();
    const [reads, bytes] = [source.reads, source.bytesRead];
    const asked = keyOf(key);
    const found = await file.get(asked);
    const spent = { ms: performance.now() - started, reads: source.reads - reads, bytes: source.bytesRead - bytes };
    const rank = found ? found.rank : await file.lower(asked);
    const before = found ? null : await file.at(rank - 1);
    const after = found ? null : await file.at(rank);
    const isInside = !found && before !== null && isInInterval(before, asked);
    const equal = found ? (await file.upper(asked)) - rank : 0;
    return {
      found: found && shownTuple(found),
      equal,
      rank,
      spent,
      isInside,
      asked: cut(file.formatKey(asked)),
      before: before && shownTuple(before),
      after: after && shownTuple(after),
      isApproximate: file.approximate !== null,
    };
  },
  async range({ from, to }) {
    const first = from === '' ? 0 : await file.lower(keyOf(from));
    const end = to === '' ? file.tuples : await file.lower(keyOf(to));
    return { first, end: Math.max(end, first) };
  },
  async tuples({ first, end }) {
    const tuples = [];
    for await (const tuple of file.ranks(first, end)) {
      tuples.push(shownTuple(tuple));
    }
    return tuples;
  },
  histograms: () => histograms(),
  async check({ id, ports }) {
    running?.abort();
    const own = new AbortController();
    running = own;
    const started = performance.now();
    let told = 0;
    const progress = (done, all, what) => {
      if (performance.now() - told >= PROGRESS_MS) {
        told = performance.now();
        postMessage({ id, progress: { done, all, what } });
      }
    };
    try {
      const helpers = helpersOf(ports, source);
      const report = await check(source, { signal: own.signal, helpers, progress });
      return { ...report, seconds: (performance.now() - started) / 1000 };
    } catch (error) {
      if (own.signal.aborted) {
        return { isCancelled: true };
      }
      throw error;
    } finally {
      running = running === own ? null : running;
    }
  },
  async share({ blob, known }) {
    source = known ? HttpSource.known(known) : sourceOf(blob);
  },
  part: ({ id, task }, post) =>
    checkPart(source, task, { advance: (bytes, what) => post({ id, progress: { bytes, what } }) }),
  /** Answers another worker, as its helper. */
  async serve({ port }) {
    port.onmessage = ({ data }) => answer(data, (message) => port.postMessage(message));
  },
  async cancel() {
    running?.abort();
  },
  async blob({ blob, url }) {
    // A file that cannot be opened can be checked.
    source = url ? await HttpSource.open(url) : sourceOf(blob);
  },
};

/** A number for the place of a key between the smallest and the largest one. */
function positionsOf(keys) {
  const [first] = keys;
  if (typeof first === 'bigint') {
    return keys.map((key) => Number(key - first));
  }
  if (typeof first === 'number') {
    return keys.map((key) => key - first);
  }
  const bytes = keys.map((key) => (typeof key === 'string' ? new TextEncoder().encode(key) : key));
  const last = bytes[bytes.length - 1];
  let common = 0;
  while (common < bytes[0].length && bytes[0][common] === last[common]) {
    common += 1;
  }
  return bytes.map((key) => {
    let number = 0;
    for (let at = 0; at < 6; at++) {
      number = number * 256 + (key[common + at] ?? 0);
    }
    return number;
  });
}

/** Counts of equal parts between the least and the greatest of some numbers. */
function countsOf(numbers) {
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  const counts = new Array(most > least ? BUCKETS : 1).fill(0);
  for (const number of numbers) {
    const part = most > least ? Math.floor(((number - least) / (most - least)) * BUCKETS) : 0;
    counts[Math.min(part, counts.length - 1)] += 1;
  }
  return { counts, least, most };
}

async function histograms() {
  const { tuples } = file;
  const most = source instanceof HttpSource ? REMOTE_SAMPLES : SAMPLES;
  const count = Math.min(most, tuples);
  if (count === 0) {
    return [];
  }
  const ranks = Array.from({ length: count }, (_, at) =>
    count === 1 ? 0 : Math.floor((at * (tuples - 1)) / (count - 1)),
  );
  const found = source instanceof HttpSource ? await Promise.all(ranks.map((rank) => file.at(rank))) : [];
  for (const rank of found.length > 0 ? [] : ranks) {
    found.push(await file.at(rank));
  }
  const said =
    count === tuples
      ? `all ${tuples.toLocaleString('en')} tuples were read`
      : `a sample: ${count.toLocaleString('en')} of ${tuples.toLocaleString('en')} tuples were read, at even steps`;
  const all = [];
  const positions = positionsOf(found.map((tuple) => tuple.key));
  if (positions.every(Number.isFinite)) {
    const [first, last] = [found[0], found[found.length - 1]];
    const { counts } = countsOf(positions);
    all.push({ title: 'Keys', said, counts, from: cut(file.formatKey(first.key)), to: cut(file.formatKey(last.key)) });
  }
  all.push(
    ...valueHistograms(
      found.map((tuple) => tuple.value),
      said,
    ),
  );
  all.push(...(await pageHistograms(ranks)));
  return all;
}

function valueHistograms(values, said) {
  if (values[0] === null) {
    return [];
  }
  if (typeof values[0] === 'string' || values[0] instanceof Uint8Array) {
    const { counts, least, most } = countsOf(values.map((value) => value.length));
    return [{ title: 'Lengths of values', said, counts, from: String(least), to: String(most) }];
  }
  const numbers = values.map(Number).filter(Number.isFinite);
  if (numbers.length === 0 || file.record) {
    return [];
  }
  const { counts, least, most } = countsOf(numbers);
  const format = (number) =>
    typeof values[0] === 'bigint' ? file.formatValue(BigInt(number)) : file.formatValue(number);
  return [{ title: 'Values', said, counts, from: format(least), to: format(most) }];
}

/** How long the pages of TEXT are. */
async function pageHistograms(ranks) {
  if (!file.header.text) {
    return [];
  }
  const pages = [...new Set(ranks.map((rank) => Math.floor(rank / 16)))];
  const lengths = [];
  for (const page of pages) {
    lengths.push((await file.textPage(page)).bytes.length);
  }
  const { counts, least, most } = countsOf(lengths);
  const all = file.header.text.shape.pages;
  const said = `${pages.length.toLocaleString('en')} of ${all.toLocaleString('en')} pages of 16 keys were read`;
  return [{ title: 'Bytes of a page of keys', said, counts, from: String(least), to: String(most) }];
}

/** What went wrong, as a kind and a sentence. */
function faultOf(error) {
  if (error instanceof Refusal) {
    return { kind: 'refused', rule: error.rule, number: error.number, text: error.message };
  }
  if (error instanceof Damage) {
    return { kind: 'damaged', rule: error.code, text: error.message };
  }
  if (error instanceof SourceError) {
    return { kind: 'source', rule: error.kind, text: error.message };
  }
  const isPlain = error instanceof RangeError || error instanceof TypeError;
  return { kind: isPlain ? 'input' : 'failed', rule: '', text: error instanceof Error ? error.message : String(error) };
}

/** Answers what the page, or another worker, asks for. */
async function answer(data, post) {
  try {
    post({ id: data.id, answer: await ASKS[data.ask](data, post) });
  } catch (error) {
    post({ id: data.id, fault: faultOf(error) });
  }
}

onmessage = ({ data }) => answer(data, (message) => postMessage(message));
