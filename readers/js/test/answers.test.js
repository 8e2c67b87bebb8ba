/**
 * Answers for many keys of every type, half of them absent, are those of the command line. PLEACH names it, and
 * PLEACH_KEYS says how many keys: 1,000 unless told, 10,000 for the record.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Pleach } from '../index.js';
import { numbers } from './forge.js';

const PLEACH = process.env.PLEACH ?? '';
const skip = !existsSync(PLEACH) && 'set PLEACH to the command line';
const folder = mkdtempSync(join(tmpdir(), 'pleach-answers-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const KEYS = Number(process.env.PLEACH_KEYS ?? 1000);
const random = numbers(11);
const big = (bits) =>
  Array.from({ length: Math.ceil(bits / 24) }, () => BigInt(random(1 << 24))).reduce(
    (all, part) => (all << 24n) | part,
    0n,
  ) &
  ((1n << BigInt(bits)) - 1n);
const hex = (digits) =>
  big(4 * digits)
    .toString(16)
    .padStart(digits, '0');
const two = (number) => String(number).padStart(2, '0');
const date = () => `${1900 + random(300)}-${two(1 + random(12))}-${two(1 + random(28))}`;
const clock = () => `${two(random(24))}:${two(random(60))}:${two(random(60))}`;
const v4 = () => [random(256), random(256), random(4), random(256)].join('.');
const v6 = () => `2001:db8:${random(65536).toString(16)}::${(1 + random(65535)).toString(16)}`;

/** Texts of keys by type, as the command line takes and prints them. */
const TYPES = {
  u32: () => String(random(2 ** 31)),
  u64: () => String(big(64)),
  i32: () => String(random(2 ** 31) - 2 ** 30),
  i64: () => String(big(63) - 2n ** 62n),
  u128: () => String(big(128)),
  f64: () => `${random(1 << 30) - (1 << 29)}.${1 + random(9)}`,
  utf8: () => `https://${hex(2)}.example.org/${'ab'.repeat(random(20))}/${random(100000)}`,
  bytes: () => hex(1 + random(30)),
  bytes5: () => hex(5),
  bytes40: () => `${'z'.repeat(20)}${hex(20)}`,
  date,
  'date[ms]': date,
  'time[s]': clock,
  'time[us]': () => `${clock()}.${1 + random(9)}`,
  'timestamp[us]': () => `${date()}T${clock()}`,
  'timestamp[s,UTC]': () => `${date()}T${clock()}Z`,
  'duration[ms]': () => `${random(1 << 30)}.${1 + random(9)}s`,
  'decimal(12,2)': () => `${random(1 << 30)}.${two(random(100))}`,
  uuid: () => `${hex(8)}-${hex(4)}-${hex(4)}-${hex(4)}-${hex(12)}`,
  ipv4: v4,
  ipv6: v6,
  ip: () => (random(2) ? v4() : v6()),
  dna2: () => Array.from({ length: 5 + random(40) }, () => 'ACGT'[random(4)]).join(''),
  'dna2:canonical': () => Array.from({ length: 21 }, () => 'ACGT'[random(4)]).join(''),
  hex: () => hex(2 * (1 + random(12))),
  'hex:8': () => hex(8),
  'hex:16': () => hex(16),
  'hex:40': () => hex(40),
};

function run(args, input) {
  const done = spawnSync(PLEACH, args, { input, encoding: 'utf8', maxBuffer: 1 << 28 });
  assert.ok(done.status === 0 || done.status === 1, `${args.join(' ')}: ${done.stderr}`);
  return done.stdout.split('\n').filter(Boolean);
}

/** Builds a file of rows of text. */
function build(name, rows, args) {
  const table = join(folder, 'table.tsv');
  const path = join(folder, `${name}.pleach`);
  writeFileSync(table, `key\tvalue\n${rows.join('\n')}\n`);
  run(['build', table, '-o', path, '--key', 'key', '--value', 'value', '-q', ...args]);
  return path;
}

const load = (path) => Pleach.open(new Uint8Array(readFileSync(path)));

for (const [number, type] of Object.keys(TYPES).entries()) {
  test(`${type}: answers are those of the command line`, { skip }, async () => {
    const texts = Array.from({ length: KEYS }, TYPES[type]);
    const present = texts.slice(0, KEYS / 2);
    const rows = present.map((text, at) => `${text}\t${at}`);
    const path = build(`keys${number}`, rows, ['--key-type', type, '--value-type', 'u32']);
    const file = await load(path);
    // Byte strings are built of texts, and asked for in hexadecimal digits.
    const asked = type.startsWith('bytes') ? texts.map((text) => Buffer.from(text).toString('hex')) : texts;
    const truth = run(['get', path, '--keys', '-', '--missing', 'absent'], `${asked.join('\n')}\n`);
    assert.equal(truth.length, KEYS);
    let found = 0;
    for (const [at, text] of asked.entries()) {
      const key = file.parseKey(text);
      const tuple = await file.get(key);
      found += tuple ? 1 : 0;
      assert.equal(`${file.formatKey(key)}\t${tuple ? tuple.value : 'absent'}`, truth[at]);
    }
    assert.ok(found >= KEYS / 2 && found < KEYS);
    const listed = run(['range', path, '..', '..']);
    for await (const { rank, key, value } of file.ranks(0, file.tuples)) {
      assert.equal(`${file.formatKey(key)}\t${value}`, listed[rank]);
    }
  });
}

const VALUES = {
  u32: () => String(random(2 ** 31)),
  u64: () => String(big(64)),
  i32: () => String(random(2 ** 31) - 2 ** 30),
  i64: () => String(big(63) - 2n ** 62n),
  f32: () => `${random(1 << 20)}.${1 + random(9)}`,
  f64: () => `${random(1 << 30)}.${1 + random(9)}e-${random(30)}`,
  utf8: () => `é${hex(random(9))}`,
  bytes: () => hex(2 * (1 + random(9))),
  bytes7: () => hex(7),
  date,
  'decimal(9,3)': () => `${random(1000)}.${String(random(1000)).padStart(3, '0')}`,
  ipv6: v6,
  uuid: TYPES.uuid,
};

for (const [number, type] of Object.keys(VALUES).entries()) {
  test(`values of ${type} are those of the command line`, { skip }, async () => {
    const rows = Array.from({ length: KEYS }, (_, at) => `${3 * at}\t${VALUES[type]()}`);
    const path = build(`values${number}`, rows, ['--key-type', 'u64', '--value-type', type]);
    const file = await load(path);
    const truth = run(['range', path, '..', '..']);
    for (let at = 0; at < KEYS; at++) {
      const tuple = await file.get(BigInt(3 * at));
      assert.equal(`${tuple.key}\t${file.formatValue(tuple.value)}`, truth[at]);
      assert.equal(await file.get(BigInt(3 * at + 1)), null);
    }
  });
}
