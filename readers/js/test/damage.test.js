import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Damage, Pleach, Refusal, RULES, check } from '../index.js';
import { crc32 } from '../src/crc.js';
import { bytesOf, names } from './files.js';
import { numbers, seal, sealHead, sectionsOf } from './forge.js';

/** Reads all tuples. */
async function readAll(bytes, options) {
  const file = await Pleach.open(bytes, options);
  for await (const tuple of file.ranks(0, file.tuples)) {
    await file.get(tuple.key);
  }
}

test('a flipped bit anywhere is found by the check', async () => {
  for (const name of names) {
    const bytes = bytesOf(name);
    const random = numbers(name.length);
    for (let round = 0; round < 12; round++) {
      const at = round < 10 ? random(bytes.length) : bytes.length - 1 - random(8192);
      bytes[at] ^= 1 << random(8);
      const { verdict, findings } = await check(bytes);
      assert.notEqual(verdict, 'clean', `${name} byte ${at}`);
      assert.ok(findings.length > 0);
      bytes.set(bytesOf(name));
    }
  }
});

test('a block that is read is verified, unless told otherwise', async () => {
  const bytes = bytesOf('u64_u64');
  const line = sectionsOf(bytes).find((it) => it.name === 'LINE');
  bytes[line.offset + 40] ^= 1;
  await assert.rejects(
    readAll(bytes),
    (error) => error instanceof Damage && error.code === 'block' && error.section === 'LINE',
  );
  await readAll(bytes, { verify: false });
  const { findings } = await check(bytes);
  assert.deepEqual(
    findings.map((it) => [it.code, it.section, it.offset]),
    [['block', 'LINE', line.offset]],
  );
});

test('damage of any file gives a Damage or a Refusal, and never anything else', async () => {
  for (const name of names) {
    const bytes = bytesOf(name);
    const random = numbers(7 * name.length);
    for (let round = 0; round < 6; round++) {
      const at = random(bytes.length);
      const old = bytes.slice(at, at + 8);
      bytes.set(
        old.map(() => random(256)),
        at,
      );
      for (const verify of [true, false]) {
        try {
          await readAll(bytes, { verify });
        } catch (error) {
          assert.ok(error instanceof Damage || error instanceof Refusal, `${name} byte ${at}: ${error?.stack}`);
        }
      }
      bytes.set(old, at);
    }
  }
});

/** Changes a file, seals it, and returns what the check finds first. */
async function codeOf(name, change) {
  const bytes = bytesOf(name);
  const sections = Object.fromEntries(sectionsOf(bytes).map((it) => [it.name, it]));
  change(bytes, sections, new DataView(bytes.buffer));
  seal(bytes);
  const report = await check(bytes);
  return report.findings[0]?.code ?? 'clean';
}

test('rules that are broken under right sums have their codes', async () => {
  const cases = [
    ['order', 'u64_u32_only_lines', (it, { LINE }, view) => view.setBigUint64(LINE.offset + 16, 0n, true)],
    ['line-padding', 'u64_u32', (it, { LINE }) => it.fill(1, LINE.offset + 40, LINE.offset + 41)],
    ['padding', 'u64_u64', (it, { SPIN }) => it.fill(1, SPIN.offset + SPIN.length, SPIN.offset + SPIN.length + 1)],
    ['separator', 'delta16', (it, { SPIN }) => it.fill(it[SPIN.offset] ^ 1, SPIN.offset, SPIN.offset + 1)],
    ['spine-line', 'delta16', (it, { SPIN }) => it.fill(128, SPIN.offset + 63, SPIN.offset + 64)],
    ['min-max', 'u64_u64', (it) => it.fill(1, 143, 144)],
    ['grid', 'u64_u64', (it, { GRID }) => it.fill(it[GRID.offset + 9] ^ 16, GRID.offset + 9, GRID.offset + 10)],
    ['meta', 'composite', (it, { META }) => it.fill(255, META.offset + 8, META.offset + 9)],
    ['mask', 'bytes_u32', (it, { MASK }) => it.fill(9, MASK.offset + 20, MASK.offset + 21)],
    ['column', 'u64_utf8', (it, { VALS }, view) => view.setUint32(VALS.offset + 8, 0, true)],
    ['column', 'u64_utf8_dictionary', (it, { CODE }) => it.fill(255, CODE.offset + 3, CODE.offset + 4)],
    ['packed', 'i64_none_packed', (it, { PACK }) => it.fill(it[PACK.offset] ^ 1, PACK.offset, PACK.offset + 1)],
    ['harmonia', 'u64_u32_harmonia', (it, { HARM }) => it.fill(it[HARM.offset] ^ 1, HARM.offset, HARM.offset + 1)],
    ['classic', 'u64_u32_classic', (it, { FAST }) => it.fill(it[FAST.offset] ^ 1, FAST.offset, FAST.offset + 1)],
    ['btree', 'u64_u32_only_btree', (it, { BTRE }) => it.fill(it[BTRE.offset] ^ 1, BTRE.offset, BTRE.offset + 1)],
    [
      'text',
      'utf8_u32_text',
      (it, { TEXT }) => it.fill(it[TEXT.offset + 2565] ^ 1, TEXT.offset + 2565, TEXT.offset + 2566),
    ],
    ['trie', 'utf8_u32_text', (it, { TRIE }) => it.fill(0, TRIE.offset + 48, TRIE.offset + 56)],
    ['interval', 'intervals', (it, { LINE }, view) => view.setUint32(LINE.offset + 24, 0xffffffff, true)],
    ['header', 'u64_u64', (it) => it.fill(1, 400, 401)],
  ];
  for (const [code, name, change] of cases) {
    assert.equal(await codeOf(name, change), code, name);
  }
  const unique = bytesOf('u64_u64');
  unique[100] = 1;
  assert.equal((await check(seal(unique))).findings[0].code, 'duplicate');
  const id = bytesOf('u64_u64');
  new DataView(id.buffer).setBigUint64(64, 5n, true);
  assert.equal((await check(sealHead(id))).verdict, 'clean', 'the generation is not part of the id');
  const copy = bytesOf('u64_u64');
  copy[copy.length - 5000] ^= 1;
  copy[copy.length - 100] ^= 1;
  const { findings } = await check(copy);
  assert.deepEqual(
    findings.map((it) => it.code),
    ['table-copy', 'superblock-copy'],
  );
});

test('refusals name their rules', async () => {
  const head = (at, byte) => (bytes) => {
    bytes[at] = byte;
    return sealHead(bytes);
  };
  const entry = (index, at, byte) => head(4096 + 128 * index + at, byte);
  const cases = [
    ['magic', (it) => it.fill(0, 0, 1)],
    ['truncated', (it) => it.slice(0, 4000)],
    ['truncated', (it) => it.slice(0, 40960)],
    ['superblock-sum', (it) => it.fill(1, 70, 71)],
    ['version', head(16, 2)],
    ['version', head(16, 0)],
    ['feature', head(24, 2)],
    ['extended', (it) => Uint8Array.of(...it, 0)],
    ['key-type', head(88, 10)],
    ['value-type', head(90, 10)],
    ['unique', head(100, 2)],
    ['table-place', head(105, 32)],
    ['table-entries', head(120, 32)],
    [
      'table-sum',
      (it) => {
        it[4100] ^= 2;
        new DataView(it.buffer).setUint32(4092, crc32(it, 0, 4092), true);
        return it;
      },
    ],
    ['first-section', entry(0, 9, 0x30)],
    ['alignment', entry(2, 8, 1)],
    ['section-order', entry(2, 9, 0x10)],
    ['section-end', entry(1, 18, 1)],
    ['flags', entry(0, 4, 2)],
    ['required-section', entry(1, 0, 0x41)],
    [
      'section-twice',
      (it) => {
        it.copyWithin(4096 + 2 * 128, 4096 + 3 * 128, 4096 + 3 * 128 + 4);
        return sealHead(it);
      },
    ],
    ['reserved', entry(2, 52, 1)],
    [
      'sums-missing',
      (it) => {
        const index = sectionsOf(it).findIndex((one) => one.name === 'SUM2');
        it.set([0x53, 0x58, 0x58, 0x58, 0], 4096 + 128 * index);
        return sealHead(it);
      },
    ],
    ['sum2-list', entry(5, 32, 4)],
    ['sums-count', entry(2, 40, 9)],
    ['sums-place', entry(2, 33, 0)],
    ['line-parameters', entry(1, 56, 63)],
    ['word-bytes', entry(1, 60, 5)],
    ['line-length', entry(1, 24, 1)],
    ['spine', entry(2, 56 + 12, 3)],
    ['grid', entry(3, 56 + 4, 9)],
  ];
  for (const [rule, change] of cases) {
    const bytes = change(bytesOf('u64_u64'));
    await assert.rejects(Pleach.open(bytes), (error) => {
      assert.ok(error instanceof Refusal, `${rule}: ${error?.stack}`);
      assert.equal(error.rule, rule);
      assert.equal(RULES[error.number - 1][0], rule);
      return true;
    });
    assert.notEqual((await check(bytes)).verdict, 'clean');
  }
});

test('0.13 is refused with the way out of it', async () => {
  const bytes = bytesOf('one');
  new DataView(bytes.buffer).setUint32(16, 13 << 16, true);
  await assert.rejects(Pleach.open(sealHead(bytes)), /pleach upgrade FILE/);
  new DataView(bytes.buffer).setUint32(16, 12 << 16, true);
  await assert.rejects(Pleach.open(sealHead(bytes)), /build it again/);
  new DataView(bytes.buffer).setUint32(16, 2, true);
  await assert.rejects(Pleach.open(sealHead(bytes)), /use a newer program/);
  assert.equal((await check(bytes)).verdict, 'newer');
  new DataView(bytes.buffer).setUint32(16, 1 + (7 << 16), true);
  bytes[300 + 50] = 1;
  assert.equal((await check(sealHead(bytes))).verdict, 'clean', 'a higher minor version may use reserved bytes');
});

test('a check can be cancelled and tells its progress', async () => {
  const bytes = bytesOf('delta8');
  const own = new AbortController();
  own.abort();
  await assert.rejects(check(bytes, { signal: own.signal }), { name: 'AbortError' });
  const seen = [];
  await check(bytes, { progress: (done, all) => seen.push([done, all]) });
  assert.ok(seen.length > 0 && seen.every(([done, all]) => done >= 0 && done <= all));
});
