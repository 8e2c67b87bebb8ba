import assert from 'node:assert/strict';
import { test } from 'node:test';
import { treeOf, indexOf, slotOf } from '../src/classic.js';
import { crc32 } from '../src/crc.js';
import { elementText, meaningOf, readElement, readLogical } from '../src/logical.js';
import { Mask } from '../src/mask.js';
import { readList, readRecord } from '../src/record.js';
import { Short } from '../src/short.js';
import { hash128 } from '../src/sip.js';
import { decodeNumber, encodeNumber, floatText, keyTypeOf } from '../src/types.js';

const bytes = (text) => new TextEncoder().encode(text);

test('sums and hashes are those of their vectors', () => {
  assert.equal(crc32(bytes('123456789')), 0xcbf43926);
  const long = Uint8Array.from({ length: 100 }, (_, at) => at * 7);
  for (let from = 0; from < 5; from++) {
    for (let to = from; to < 100; to++) {
      const parts = crc32(
        long,
        from + Math.floor((to - from) / 2),
        to,
        crc32(long, from, from + Math.floor((to - from) / 2)),
      );
      assert.equal(crc32(long, from, to), parts);
    }
  }
  assert.equal(hash128(bytes('')), 0xf4f2_ced4_47ab_0242_7de0_a380_47d7_4950n);
  assert.equal(hash128(bytes('abc')), 0x7854_d1d5_c169_5eca_a82f_9602_c3de_956cn);
  assert.equal(hash128(bytes('correct horse battery')), 0xbbbf_da13_1b53_1374_59d7_6f4c_bdb4_42a3n);
});

test('encodings have the order of the numbers and read back', () => {
  const cases = [
    [1, 4, [0, 1, 2 ** 32 - 1]],
    [2, 8, [0n, 1n, 2n ** 64n - 1n]],
    [3, 4, [-(2 ** 31), -1, 0, 2 ** 31 - 1]],
    [4, 8, [-(2n ** 63n), -1n, 0n, 2n ** 63n - 1n]],
    [5, 16, [0n, 2n ** 127n]],
    [6, 8, [-Infinity, -1.5, -5e-324, 0, 5e-324, 1, Infinity]],
  ];
  for (const [code, size, keys] of cases) {
    const type = keyTypeOf(code, size);
    const words = keys.map((key) => encodeNumber(type, key));
    words.forEach((word, at) => {
      assert.ok(at === 0 || words[at - 1] < word);
      assert.equal(decodeNumber(type, word), keys[at]);
    });
  }
  const f64 = keyTypeOf(6, 8);
  assert.equal(encodeNumber(f64, -0), encodeNumber(f64, 0));
  assert.equal(encodeNumber(keyTypeOf(1, 4), 1.5), null);
  assert.equal(encodeNumber(keyTypeOf(1, 4), -1), null);
  assert.equal(encodeNumber(keyTypeOf(1, 4), 2 ** 32), null);
  assert.deepEqual([keyTypeOf(7, 0), keyTypeOf(7, 65536), keyTypeOf(1, 8), keyTypeOf(10, 0)], [null, null, null, null]);
});

test('short words know where keys without a word belong', () => {
  const short = new Short(8, 4, 100n, [
    { from: 0, bits: 3 },
    { from: 8, bits: 2 },
  ]);
  const keys = Array.from({ length: 32 }, (_, word) => short.key(BigInt(word)));
  for (let query = 0n; query < 1100n; query++) {
    const below = keys.filter((key) => key < query).length;
    const place = short.place(query);
    assert.equal(place.isKey, keys.includes(query));
    assert.equal(place.isEnd ? 32 : Number(place.word), below, `${query}`);
  }
});

test('a mask gives the place of every query', () => {
  const head = new Uint8Array(32);
  head.set([2, 0, 0, 0, 2, 0, 0, 0, 3, 0, 1, 0]);
  // Two bytes of which three bits and the length vary.
  const mask = new Mask(Uint8Array.of(...head, 0x40, 0x10, 0x05, 0x80), 4);
  const keys = [];
  for (let word = 0; word < 32; word++) {
    const key = mask.keyOf(Uint32Array.of(word, 0, 0, 0), null);
    const own = new Uint32Array(4);
    if (mask.wordOf(key, own) && own[0] === word) {
      keys.push([key, word]);
    }
  }
  assert.ok(keys.length >= 8);
  const compare = (one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other));
  for (let query = 0; query < 65536; query += 7) {
    const asked = Uint8Array.of(query >> 8, query & 255);
    const place = mask.place(asked);
    const below = keys.filter(([key]) => compare(key, asked) < 0).map(([, word]) => BigInt(word));
    const isBelow = (word) => (place.isKey || !place.isAfter ? word < place.word : word <= place.word);
    assert.deepEqual(keys.map(([, word]) => BigInt(word)).filter(isBelow), below, `${query.toString(16)}`);
  }
});

test('logical types read what they print', () => {
  const cases = [
    ['Date32', '2024-02-29', 19782n],
    ['Date32', '-0001-03-01', null],
    ['Time32(Second)', '23:59:59', 86399n],
    ['Time64(Microsecond)', '12:00:00.5', 43_200_500_000n],
    ['Duration(Nanosecond)', '-1.5s', -1_500_000_000n],
    ['Timestamp(Second, Some("UTC"))', '1970-01-02T00:00:00Z', 86400n],
    ['Timestamp(Millisecond, None)', '1969-12-31T23:59:59.999', -1n],
    ['Decimal128(15, 2)', '-7675.05', -767505n],
    ['Uuid', '01234567-89ab-cdef-0123-456789abcdef', 0x0123456789abcdef0123456789abcdefn],
    ['Ipv4', '192.0.2.1', 0xc0000201n],
    ['Ipv6', '2001:db8::1', 0x20010db8000000000000000000000001n],
    ['Ip', '255.255.255.255', 0xffffffffn],
    ['Ip', '::', 0x100000000n],
    ['Ip', '::fffe:ffff:ffff', null],
    ['Dna2', 'ACGT', (0x1bn << 120n) | 4n],
    ['Hex(5)', '5baa6', 0x5baa6n],
    ['Boolean', 'true', 1n],
    ['composite<a: u8, b: utf8, c: bytes>', '7,"x,""y",00ff', null],
  ];
  for (const [type, text, number] of cases) {
    const logical = readLogical(type);
    assert.notEqual(logical.kind, 'unknown', type);
    const element = readElement(logical, text);
    assert.notEqual(element, null, `${type} ${text}`);
    assert.equal(elementText(logical, element), text, type);
    if (number !== null) {
      assert.equal(element, number, `${type} ${text}`);
    }
  }
  assert.equal(readElement(readLogical('Timestamp(Second, Some("UTC"))'), '1970-01-01T02:00:00+02:00'), 0n);
  assert.equal(readElement(readLogical('Dna2(Canonical)'), 'TTTT'), readElement(readLogical('Dna2'), 'AAAA'));
  assert.equal(readElement(readLogical('Hash64(1)'), 'abc'), 0x54d1_d5c1_695e_caa8n);
  const wrong = [
    ['Date32', '2023-02-29'],
    ['Date32', '12024-01-01'],
    ['Ipv4', '1.2.3.256'],
    ['Ipv4', '01.2.3.4'],
    ['Ipv6', '1::2::3'],
    ['Uuid', '0123'],
    ['Decimal128(5, 1)', '1.25'],
    ['Time32(Second)', '24:00:00'],
    ['Hex', '0'],
    ['Dna2', 'ACGN'],
    ['Timestamp(Second, Some("UTC"))', '1970-01-01T00:00:00'],
    ['composite<a: u8, b: u8>', '256,0'],
    ['Dna2', 'A'.repeat(62)],
  ];
  for (const [type, text] of wrong) {
    assert.equal(readElement(readLogical(type), text), null, `${type} ${text}`);
  }
  for (const text of [
    'Decimal128(+5, 2)',
    'Hex(33)',
    'Hash64(16)',
    'Prefix(0)',
    'Time32(Fortnight)',
    'composite<a: u8>',
  ]) {
    assert.equal(readLogical(text).kind, 'unknown', text);
  }
  assert.equal(meaningOf('Ipv4', 'u64').kind, 'unknown');
});

test('floats are printed in the fewest digits', () => {
  assert.equal(floatText(Math.fround(0.1), true), '0.1');
  assert.equal(floatText(0.1, false), '0.1');
  assert.equal(floatText(41, false), '41.0');
  assert.equal(floatText(-0, false), '-0.0');
  assert.equal(floatText(1e300, false), '1e300');
  assert.equal(floatText(1.5e-7, false), '1.5e-7');
  assert.deepEqual([floatText(NaN, true), floatText(-Infinity, true)], ['NaN', '-inf']);
});

test('records have exactly one text', () => {
  assert.deepEqual(
    readRecord('record<left: u32, "a b": utf8>', 'bytes').fields.map((field) => field.name),
    ['left', 'a b'],
  );
  assert.equal(readRecord('record<a: u32>', 'u64'), null);
  for (const text of [
    'record<a: u32, a: u32>',
    'record<"a": u32>',
    'record<a: u32 >',
    'record<a:u32>',
    'record<>',
    'record<a: u9>',
  ]) {
    assert.equal(readRecord(text, 'u32'), null, text);
  }
  assert.equal(readList('record<a: i32 "Date32">', 'record<')[0].logical, 'Date32');
});

test("slots of a classic tree and their indexes are each other's inverse", () => {
  for (const [keys, dk, dl, dp, padded, aligned] of [
    [31, 2, 5, 5, false, false],
    [1000, 2, 4, 6, true, false],
    [200000, 2, 4, 9, true, true],
    [1 << 12, 1, 3, 5, true, false],
  ]) {
    const tree = treeOf({ keys, keyBytes: 4, dk, dl, dp, padded, aligned }, true);
    const found = new Set();
    for (let index = 0; index < 2 ** tree.depth - 1; index++) {
      let [height, rest] = [0, index];
      while (rest % 2 === 1) {
        rest = Math.floor(rest / 2);
        height += 1;
      }
      const slot = slotOf(tree, tree.depth - 1 - height, Math.floor(index / 2 ** (height + 1)));
      assert.ok(slot >= 0 || index >= keys, `${index}`);
      if (slot >= 0) {
        assert.equal(indexOf(tree, slot), index);
        found.add(slot);
      }
    }
    for (let slot = 0; slot < tree.slots; slot++) {
      assert.equal(indexOf(tree, slot) >= 0, found.has(slot));
    }
  }
  const tree = treeOf({ keys: 31, keyBytes: 4, dk: 2, dl: 5, dp: 5, padded: false, aligned: false }, true);
  const order = [15, 7, 23, 3, 1, 5, 11, 9, 13, 19, 17, 21, 27, 25, 29, 0, 2, 4];
  assert.deepEqual(
    order.map((_, slot) => indexOf(tree, slot)),
    order,
  );
});
