/**
 * Makes a changed file valid again as far as sums go: stored sums, their sums, the file id, the copies at the end.
 */
import { Binding, crc32 } from '../src/crc.js';
import { SipHash } from '../src/sip.js';

const BLOCK = 8192;
const PAGE = 4096;

/** Places of the entries of the section table. */
function entriesOf(view) {
  const count = Math.min(view.getUint32(120, true), 31);
  const u64 = (at) => Number(view.getBigUint64(at, true));
  return Array.from({ length: count }, (_, number) => {
    const at = PAGE + 128 * number;
    const tag = new Uint8Array(view.buffer, view.byteOffset + at, 4);
    const end = number + 1 < count ? u64(at + 128 + 8) : view.byteLength - 2 * PAGE;
    return {
      at,
      tag,
      name: String.fromCharCode(...tag),
      offset: u64(at + 8),
      length: u64(at + 16),
      end,
      list: u64(at + 32),
      sums: u64(at + 40),
    };
  });
}

/** Sections of a file: `{at, name, offset, length, end, ...}`. */
export const sectionsOf = (bytes) => entriesOf(new DataView(bytes.buffer, bytes.byteOffset, bytes.length));

/** Seals superblock and section table, and copies both to the end. */
export function sealHead(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  view.setUint32(124, crc32(bytes, PAGE, 2 * PAGE), true);
  view.setUint32(4092, crc32(bytes, 0, 4092), true);
  bytes.copyWithin(bytes.length - PAGE, 0, PAGE);
  bytes.copyWithin(bytes.length - 2 * PAGE, PAGE, 2 * PAGE);
  return bytes;
}

/** Gives all blocks their sums, the file its id, and seals the head. */
export function seal(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const sections = entriesOf(view);
  const plain = sections.filter((it) => it.name !== 'SUMS' && it.name !== 'SUM2');
  const blocksOf = (it) =>
    Array.from({ length: it.sums }, (_, block) =>
      crc32(bytes, it.offset + block * BLOCK, Math.min(it.offset + (block + 1) * BLOCK, it.end)),
    );
  const hash = new SipHash();
  hash.write(new TextEncoder().encode('pleach file id 0'));
  for (const [from, to] of [
    [88, 92],
    [100, 104],
    [80, 88],
  ]) {
    hash.write(bytes.subarray(from, to));
  }
  const unbound = new Map(plain.map((it) => [it, blocksOf(it)]));
  for (const it of plain) {
    for (const [from, to] of [
      [0, 8],
      [16, 32],
      [56, 120],
    ]) {
      hash.write(bytes.subarray(it.at + from, it.at + to));
    }
    hash.write(new Uint8Array(Uint32Array.from(unbound.get(it)).buffer));
  }
  bytes.set(hash.finish(), 48);
  const put = (it, sums) => {
    const binding = new Binding(bytes.subarray(48, 64), it.tag);
    sums.forEach((sum, block) => view.setUint32(it.list + 4 * block, sum ^ binding.of(block), true));
    view.setUint32(it.at + 48, crc32(bytes, it.list, it.list + 4 * it.sums), true);
  };
  plain.forEach((it) => put(it, unbound.get(it)));
  const sums = sections.find((it) => it.name === 'SUMS');
  const sum2 = sections.find((it) => it.name === 'SUM2');
  put(sums, blocksOf(sums));
  view.setUint32(sum2.at + 48, crc32(bytes, sum2.offset, sum2.end), true);
  return sealHead(bytes);
}

/** Makes a file of keys and values of u64 that has nothing but META, tuple lines and sums. */
export function linesOf(tuples) {
  const lineBytes = Math.ceil(tuples / 8) * 128;
  const extents = [
    ['META', 0],
    ['LINE', lineBytes],
  ];
  const align = (value, to) => Math.ceil(value / to) * to;
  const lineAt = lineBytes < 32 << 20 ? 8192 : 256 << 10;
  const offsets = [8192, lineAt, align(lineAt + lineBytes, PAGE)];
  const counts = extents.map((_, at) => Math.ceil((offsets[at + 1] - offsets[at]) / BLOCK));
  const lists = [offsets[2], offsets[2] + align(4 * counts[0], 128)];
  const sumsBytes = lists[1] + 4 * counts[1] - offsets[2];
  const sum2At = align(offsets[2] + sumsBytes, PAGE);
  const sumsCount = Math.ceil((sum2At - offsets[2]) / BLOCK);
  const end = align(sum2At + 4 * sumsCount, PAGE);
  const bytes = new Uint8Array(end + 2 * PAGE);
  const view = new DataView(bytes.buffer);
  bytes.set([0x89, 0x50, 0x4c, 0x45, 0x41, 0x43, 0x48, 13, 10, 0x1a, 10]);
  view.setUint16(16, 1, true);
  const fields = [
    [64, 1],
    [72, bytes.length],
    [80, tuples],
    [104, PAGE],
    [112, PAGE],
  ];
  fields.forEach(([at, value]) => view.setBigUint64(at, BigInt(value), true));
  [
    [88, 2],
    [90, 2],
  ].forEach(([at, value]) => view.setUint16(at, value, true));
  [
    [92, 8],
    [96, 8],
    [120, 4],
    [128, 8],
    [132, 8],
  ].forEach(([at, value]) => view.setUint32(at, value, true));
  view.setBigUint64(136, 3n);
  view.setBigUint64(200, BigInt(7 * (tuples - 1) + 3));
  const entries = [
    ['META', 0, offsets[0], 0, 0, lists[0], counts[0]],
    ['LINE', 1, offsets[1], lineBytes, tuples, lists[1], counts[1]],
    ['SUMS', 1, offsets[2], sumsBytes, counts[0] + counts[1], sum2At, sumsCount],
    ['SUM2', 1, sum2At, 4 * sumsCount, sumsCount, 0, 0],
  ];
  entries.forEach(([tag, flags, ...numbers], number) => {
    const at = PAGE + 128 * number;
    bytes.set(new TextEncoder().encode(tag), at);
    view.setUint32(at + 4, flags, true);
    numbers.forEach((value, field) => view.setBigUint64(at + 8 + 8 * field, BigInt(value), true));
  });
  [64, 8, 8, 4].forEach((value, field) => view.setUint32(PAGE + 128 + 56 + 4 * field, value, true));
  for (let rank = 0; rank < tuples; rank++) {
    const at = lineAt + Math.floor(rank / 4) * 64 + (rank % 4) * 8;
    view.setUint32(at, 7 * rank + 3, true);
    view.setUint32(at + 32, rank, true);
  }
  for (let rank = tuples; rank % 4 !== 0; rank++) {
    view.setBigUint64(lineAt + Math.floor(rank / 4) * 64 + (rank % 4) * 8, (1n << 64n) - 1n, true);
  }
  return seal(bytes);
}

/** Numbers that look random, and are the same in every run. */
export function numbers(seed) {
  let state = BigInt(seed) * 0x9e3779b97f4a7c15n + 1n;
  return (below) => {
    state = (state * 0x5851f42d4c957f2dn + 0x14057b7ef767814fn) & ((1n << 64n) - 1n);
    return Number((state >> 33n) % BigInt(below));
  };
}
