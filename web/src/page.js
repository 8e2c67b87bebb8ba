/**
 * The page: forms and what they show. All work on the file is done in the worker.
 */
const PAGE_TUPLES = 50;
/** Threads of a check at most, and bytes of a file from which on it has more than one. */
const THREADS_MAX = 4;
const THREADS_BYTES = 8 << 20;
const COLORS = {
  META: '#c9d2cd',
  LINE: '#7fc4a8',
  SPIN: '#8fb7e3',
  GRID: '#b9a5e2',
  MASK: '#e0c08a',
  TAIL: '#e8a87c',
  KEYS: '#e2879a',
  TEXT: '#7fc4c4',
  TRIE: '#6fa5c9',
  VALS: '#d7d07c',
  CODE: '#c7b45e',
  PACK: '#d59fd0',
  FAST: '#a3c77a',
  HARM: '#93c0a0',
  BTRE: '#9fb58a',
  SUMS: '#b7bfbb',
  SUM2: '#a5aeaa',
  copies: '#d9dedb',
  head: '#d9dedb',
};

/** @param {string} id */
const at = (id) => document.getElementById(id);
const number = (value) => Number(value).toLocaleString('en');

/**
 * Makes an element.
 * @param {string} name
 * @param {{[name: string]: any}} [properties]
 * @param {(Node | string)[]} [children]
 */
function make(name, properties = {}, children = []) {
  const element = document.createElement(name);
  Object.assign(element, properties);
  element.append(...children);
  return element;
}

const script = new Blob([at('worker').textContent], { type: 'text/javascript' });
const address = URL.createObjectURL(script);
const worker = new Worker(address);
const waiting = new Map();
let asked = 0;

worker.onmessage = ({ data }) => {
  const waits = waiting.get(data.id);
  if (data.progress) {
    waits?.progress?.(data.progress);
    return;
  }
  waiting.delete(data.id);
  if (data.fault) {
    waits?.reject(data.fault);
  } else {
    waits?.resolve(data.answer);
  }
};

worker.onerror = (event) => tell(`The reader failed: ${event.message}`);

/**
 * Asks the worker.
 * @param {string} ask
 * @param {object} [data]
 * @param {(progress: {done: number, all: number, what: string}) => void} [progress]
 * @param {MessagePort[]} [ports]
 */
function request(ask, data = {}, progress = undefined, ports = []) {
  asked += 1;
  const id = asked;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject, progress });
    worker.postMessage({ ...data, id, ask, ports }, ports);
  });
}

/** Shows a sentence; none hides it. */
function tell(text = '') {
  at('message').textContent = text;
  at('message').hidden = text === '';
}

/** A fault of the worker as one sentence. */
function sentence(fault) {
  switch (fault.kind) {
    case 'refused':
      return `The file is refused by rule ${fault.number}, ${fault.rule}: ${fault.text}.`;
    case 'damaged':
      return `The file is damaged (${fault.rule}): ${fault.text}.`;
    case 'source':
      return `The file cannot be read (${fault.rule}): ${fault.text}.`;
    case 'input':
      return `${fault.text}.`;
    default:
      return `Something failed in this page: ${fault.text ?? fault}.`;
  }
}

/** Runs a step of the page with a sign that it runs. */
async function during(what, step) {
  at('busy').textContent = what;
  try {
    return await step();
  } catch (fault) {
    tell(sentence(fault));
    return null;
  } finally {
    at('busy').textContent = '';
  }
}

/** What was opened last: `{blob}` or `{url}`, and its name. */
let opened = null;
/** Ranks of the range that is listed. */
let listed = { first: 0, end: 0, at: 0 };

async function open(what, name) {
  opened = what;
  tell();
  at('file-view').hidden = true;
  clear();
  document.title = `${name} · Pleach file`;
  const started = performance.now();
  await during(`Opening ${name} …`, async () => {
    try {
      const info = await request('open', what);
      show(info, name, performance.now() - started);
      showAll(true);
    } catch (fault) {
      // Files that are refused or damaged can still be checked, which may tell more.
      const hasFile = fault.kind === 'refused' || fault.kind === 'damaged';
      if (hasFile && fault.rule !== 'magic') {
        await request('blob', what);
        showAll(false);
      }
      throw fault;
    }
  });
}

/** Shows all of the view, or the check alone. */
function showAll(isWhole) {
  at('file-view').hidden = false;
  for (const section of at('file-view').children) {
    section.hidden = !isWhole && section.querySelector('#check') === null;
  }
}

function clear() {
  for (const id of ['found', 'histograms', 'verdict']) {
    at(id).replaceChildren();
  }
  for (const id of ['page', 'progress', 'findings-view', 'cancel']) {
    at(id).hidden = true;
  }
  at('check').disabled = false;
}

/** @param {string[]} parts */
const words = (parts) => parts.filter(Boolean).join(' ');

function typeText(column) {
  if (column.isRecord) {
    return column.logical;
  }
  if (column.kind === 'unknown') {
    return words([column.type, column.logical, '(a type that this page does not know)']);
  }
  return words([column.type, column.logical]);
}

const columnText = (column) => words([typeText(column), column.name && `“${column.name}”`]);

function show(info, name, ms) {
  const facts = [
    ['file', `${name}, ${number(info.bytes)} bytes, opened in ${ms.toFixed(0)} ms`],
    ['format', info.version],
    ['keys', columnText(info.key)],
    ['from, to', info.tuples > 0 ? `${info.smallest} … ${info.largest}` : 'no keys'],
    ['values', info.value.type === 'none' ? 'none' : columnText(info.value)],
    [
      'tuples',
      [
        number(info.tuples),
        info.isUnique ? 'keys are unique' : 'keys may repeat',
        info.isInterval && 'keys begin intervals',
      ]
        .filter(Boolean)
        .join(', '),
    ],
    ['file id', `${info.fileId}, generation ${info.generation}`],
    ['lineage', info.lineage],
    ['built by', info.builder],
    ['sums', 'every block that is read is verified by its sum'],
  ];
  if (info.distinct !== null) {
    facts.push(['approximate', 'keys are shorter than those they stand for: a key that was not built in may be found']);
  }
  const rows = facts.filter(([, text]) => text !== '');
  at('facts').replaceChildren(
    ...rows.flatMap(([term, text]) => [make('dt', { textContent: term }), make('dd', { textContent: text })]),
  );
  showSections(info);
  at('search-note').replaceChildren(...info.search.map((text) => make('li', { textContent: text })));
  at('key-hint').textContent = hintOf(info);
}

/** How a key is written. */
function hintOf(info) {
  const { kind, type } = info.key;
  const hints = {
    date: 'A date, such as 2024-01-31.',
    timestamp: 'A time, such as 2024-01-31T12:00:00.',
    uuid: 'A uuid.',
    ipv4: 'An address, such as 192.0.2.1.',
    ipv6: 'An address, such as 2001:db8::1.',
    ip: 'An address of IPv4 or IPv6.',
    dna: 'Bases, such as ACGT.',
    hex: 'Hexadecimal digits, two a byte.',
    digits: 'Hexadecimal digits.',
    hash: 'Any text: its hash is looked up.',
    prefix: 'Any text: its beginning is looked up.',
    composite: `Its parts with commas between them: ${info.key.logical}.`,
    decimal: 'A number with a point.',
    time: 'A time of day, such as 12:00:00.',
    duration: 'A duration, such as 90s.',
  };
  if (hints[kind]) {
    return hints[kind];
  }
  if (type === 'utf8') {
    return 'A text.';
  }
  if (type.startsWith('bytes')) {
    return type === 'bytes'
      ? 'Hexadecimal digits, two a byte.'
      : `Hexadecimal digits, two a byte, or a text of ${type.slice(5)} bytes.`;
  }
  return `A number of type ${type}.`;
}

function showSections(info) {
  const copies = {
    tag: '',
    content: 'closing copies',
    offset: info.bytes - 8192,
    length: 8192,
    extent: 8192,
    elements: 0,
  };
  const head = { tag: '', content: 'superblock and section table', offset: 0, length: 8192, extent: 8192, elements: 0 };
  const rows = [head, ...info.sections, copies];
  const share = (row) => (100 * row.extent) / info.bytes;
  const color = (row) => COLORS[row.tag] ?? COLORS.head;
  at('map').replaceChildren(
    ...rows
      .filter((row) => row.extent > 0)
      .map((row) => {
        const label = make('b', { textContent: row.tag });
        const part = make('span', { title: `${row.tag || row.content}: ${share(row).toFixed(2)}%` }, [label]);
        part.style.flexBasis = `${share(row)}%`;
        part.style.background = color(row);
        return part;
      }),
  );
  const list = rows.map((row) => `${row.tag || row.content} ${share(row).toFixed(1)} percent`).join(', ');
  at('map').setAttribute('aria-label', `Sections by size: ${list}`);
  at('sections').tBodies[0].replaceChildren(
    ...rows.map((row) => {
      const swatch = make('span', { className: 'swatch' });
      swatch.style.background = color(row);
      const many = row.elements === 1 ? row.element : `${row.element}s`;
      const holds = row.element ? `${number(row.elements)} ${many}` : '';
      return make('tr', {}, [
        make('td', {}, [swatch, row.tag]),
        make('td', { textContent: row.content }),
        make('td', { className: 'number', textContent: number(row.offset) }),
        make('td', { className: 'number', textContent: number(row.length) }),
        make('td', { className: 'number', textContent: `${share(row).toFixed(2)}%` }),
        make('td', { textContent: holds }),
      ]);
    }),
  );
}

function tupleTable(rows) {
  const heads = ['', 'rank', 'key', 'value'].map((text) =>
    make('th', { scope: 'col', textContent: text, className: text === 'rank' ? 'number' : '' }),
  );
  const body = rows.map(([what, tuple]) =>
    make('tr', {}, [
      make('th', { scope: 'row', textContent: what }),
      make('td', { className: 'number', textContent: number(tuple.rank) }),
      make('td', { className: 'wide', textContent: tuple.key }),
      make('td', { className: 'wide', textContent: tuple.value }),
    ]),
  );
  return make('div', { className: 'scroll' }, [
    make('table', {}, [make('thead', {}, [make('tr', {}, heads)]), make('tbody', {}, body)]),
  ]);
}

at('lookup').addEventListener('submit', async (event) => {
  event.preventDefault();
  tell();
  at('found').replaceChildren();
  const answer = await during('Looking up …', () => request('get', { key: at('key').value }));
  if (!answer) {
    return;
  }
  const { found, spent } = answer;
  const reads = spent.reads === 1 ? '1 read' : `${number(spent.reads)} reads`;
  const cost = `${spent.ms.toFixed(1)} ms, ${reads}, ${number(spent.bytes)} bytes`;
  const parts = [];
  if (found) {
    const times = answer.equal > 1 ? `The key stands ${number(answer.equal)} times; the first one:` : 'Found:';
    parts.push(make('p', { className: 'good', textContent: times }), tupleTable([['found', found]]));
  } else {
    const rows = [
      ['before', answer.before],
      ['after', answer.isInside ? null : answer.after],
    ].filter((row) => row[1]);
    const where = answer.isInside
      ? 'It is inside of the interval that begins before it:'
      : `Absent. It would stand at rank ${number(answer.rank)}.`;
    parts.push(make('p', { className: answer.isInside ? 'good' : '', textContent: where }));
    if (rows.length > 0) {
      parts.push(tupleTable(rows));
    }
  }
  parts.push(make('p', { className: 'small', textContent: cost }));
  at('found').replaceChildren(...parts);
});

at('range').addEventListener('submit', async (event) => {
  event.preventDefault();
  tell();
  const found = await during('Finding the range …', () =>
    request('range', { from: at('from').value, to: at('to').value }),
  );
  if (found) {
    listed = { ...found, at: found.first };
    await list();
  }
});

async function list() {
  const end = Math.min(listed.at + PAGE_TUPLES, listed.end);
  const tuples = await during('Reading tuples …', () => request('tuples', { first: listed.at, end }));
  if (!tuples) {
    return;
  }
  at('page').hidden = false;
  const count = listed.end - listed.first;
  at('page-of').textContent =
    count === 0
      ? 'No tuples are in this range.'
      : `Tuples ${number(listed.at - listed.first + 1)} to ${number(end - listed.first)} of ${number(count)}.`;
  at('tuples').tBodies[0].replaceChildren(
    ...tuples.map((tuple) =>
      make('tr', {}, [
        make('td', { className: 'number', textContent: number(tuple.rank) }),
        make('td', { className: 'wide', textContent: tuple.key }),
        make('td', { className: 'wide', textContent: tuple.value }),
      ]),
    ),
  );
  at('previous').disabled = listed.at === listed.first;
  at('next').disabled = end === listed.end;
}

at('next').addEventListener('click', () => {
  listed.at = Math.min(listed.at + PAGE_TUPLES, listed.end);
  return list();
});
at('previous').addEventListener('click', () => {
  listed.at = Math.max(listed.at - PAGE_TUPLES, listed.first);
  return list();
});

at('sample').addEventListener('click', async () => {
  tell();
  const all = await during('Sampling …', () => request('histograms'));
  if (!all) {
    return;
  }
  if (all.length === 0) {
    at('histograms').replaceChildren(make('p', { textContent: 'There is nothing to sample.' }));
  }
  at('histograms').replaceChildren(...all.map(histogram));
});

function histogram({ title, said, counts, from, to }) {
  const most = Math.max(...counts);
  const bars = counts.map((count) => {
    const bar = make('span', { title: number(count) });
    bar.style.height = `${(100 * count) / most}%`;
    return bar;
  });
  const picture = make('div', { className: 'bars' }, bars);
  picture.setAttribute('role', 'img');
  const peak = counts.indexOf(most) + 1;
  picture.setAttribute(
    'aria-label',
    `${title}: ${counts.length} parts of equal width; part ${peak} has the most, ${most}`,
  );
  const ends = make('div', { className: 'ends' }, [
    make('span', { textContent: from }),
    make('span', { textContent: to }),
  ]);
  return make('figure', {}, [make('figcaption', { textContent: `${title} (${said})` }), picture, ends]);
}

/**
 * Starts workers that help to check the file: one for each core that is left. The page does that, since in a page from
 * a folder a worker cannot start others. Returns ports to them, and what ends them.
 */
function startHelpers() {
  const isLarge = (opened?.blob?.size ?? Infinity) >= THREADS_BYTES;
  const threads = isLarge ? Math.min(navigator.hardwareConcurrency ?? 1, THREADS_MAX) : 1;
  const workers = Array.from({ length: threads - 1 }, () => new Worker(address));
  const ports = workers.map((helper) => {
    const { port1, port2 } = new MessageChannel();
    helper.postMessage({ ask: 'serve', port: port1 }, [port1]);
    helper.onerror = (event) => {
      tell(`The reader failed: ${event.message}`);
      request('cancel');
    };
    return port2;
  });
  return { ports, end: () => workers.forEach((helper) => helper.terminate()) };
}

at('check').addEventListener('click', async () => {
  tell();
  at('verdict').replaceChildren();
  at('findings-view').hidden = true;
  at('check').disabled = true;
  at('cancel').hidden = false;
  at('progress').hidden = false;
  const started = performance.now();
  const helpers = startHelpers();
  const progress = ({ done, all, what }) => {
    at('bar').value = done / all;
    const rate = done / 1e6 / ((performance.now() - started) / 1000);
    at('progress-text').textContent = `${Math.floor((100 * done) / all)}%: ${what}, ${rate.toFixed(0)} MB/s`;
  };
  const report = await during('Checking …', () => request('check', {}, progress, helpers.ports));
  helpers.end();
  at('check').disabled = false;
  at('cancel').hidden = true;
  at('progress').hidden = true;
  if (report) {
    showReport(report);
  }
});

at('cancel').addEventListener('click', () => request('cancel'));

function showReport(report) {
  if (report.isCancelled) {
    at('verdict').replaceChildren('The check was cancelled. Nothing is known of what was not read.');
    return;
  }
  const rate = report.bytes / 1e6 / Math.max(report.seconds, 1e-3);
  const speed = report.bytes > 1e7 ? ` (${rate.toFixed(0)} MB/s)` : '';
  const seconds = report.seconds.toFixed(2);
  const spent = `${number(report.blocks)} blocks, ${number(report.bytes)} bytes in ${seconds} s${speed}`;
  const count = report.findings.length;
  const texts = {
    clean: 'The file is intact: every sum matches, and all of its parts agree.',
    damaged: `The file is damaged: ${count === 1 ? 'one fault was' : `${number(count)} faults were`} found.`,
    foreign: 'This is not a Pleach file.',
    newer: 'The file is of a version, or has a feature, that this page does not know.',
  };
  const isGood = report.verdict === 'clean';
  at('verdict').replaceChildren(
    make('span', { className: isGood ? 'good' : 'bad', textContent: texts[report.verdict] }),
    make('br'),
    make('span', { className: 'small', textContent: spent }),
  );
  at('findings-view').hidden = count === 0;
  at('findings').tBodies[0].replaceChildren(
    ...report.findings.map((it) =>
      make('tr', {}, [
        make('td', { textContent: it.code }),
        make('td', { textContent: it.section }),
        make('td', { className: 'number', textContent: number(it.offset) }),
        make('td', { textContent: it.text }),
        make('td', { textContent: it.expected }),
        make('td', { textContent: it.found }),
      ]),
    ),
  );
}

at('file').addEventListener('change', () => {
  const [blob] = at('file').files;
  if (blob) {
    open({ blob }, blob.name);
  }
});
addEventListener('dragover', (event) => {
  event.preventDefault();
  at('drop').classList.add('over');
});
addEventListener('dragleave', () => at('drop').classList.remove('over'));
addEventListener('drop', (event) => {
  event.preventDefault();
  at('drop').classList.remove('over');
  const [blob] = event.dataTransfer.files;
  if (blob) {
    open({ blob }, blob.name);
  }
});

at('remote').addEventListener('submit', (event) => {
  event.preventDefault();
  // The page starts anew, since its policy is decided when it starts.
  location.search = `?url=${encodeURIComponent(at('url').value)}`;
});

const asks = new URLSearchParams(location.search).get('url');
if (asks === null) {
  at('privacy').textContent = 'The file stays on this machine: this page may connect to nothing.';
} else {
  at('url').value = asks;
  try {
    const { href, origin, protocol } = new URL(asks, location.href);
    at('privacy').textContent = `This page may connect to ${origin} alone, and reads parts of one file from there.`;
    if (!/^https?:$/.test(protocol)) {
      throw new TypeError('address');
    }
    open({ url: href }, href);
  } catch {
    at('privacy').textContent = 'The file stays on this machine: this page may connect to nothing.';
    tell('This is not the address of a file on a web server.');
  }
}
