/**
 * A check that is divided among threads finds the same, in the same order, as one that is not.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BytesSource, check, checkPart } from '../index.js';
import { Job, Stream } from '../src/check/reader.js';
import { bytesOf, names } from './files.js';
import { linesOf, numbers, seal, sectionsOf } from './forge.js';

/** Checks a file in parts of so many bytes. */
function split(bytes, partBytes, options = {}) {
  const helper = (task, advance) => checkPart(bytes, structuredClone(task), { advance });
  return check(bytes, { helpers: [helper, helper], partBytes, ...options });
}

test('valid files are found valid, however they are divided', async () => {
  for (const name of names) {
    const bytes = bytesOf(name);
    const whole = await check(bytes);
    for (const partBytes of [1000, 9000]) {
      assert.deepEqual(await split(bytes, partBytes), whole, `${name} in parts of ${partBytes} bytes`);
    }
  }
});

test('damage is found in the same places, however files are divided', async () => {
  for (const name of names) {
    const random = numbers(31 * name.length);
    for (let round = 0; round < 8; round++) {
      const bytes = bytesOf(name);
      const sections = sectionsOf(bytes).filter((it) => !it.name.startsWith('SUM') && it.length > 0);
      for (let change = 0; sections.length > 0 && change < 3; change++) {
        const { offset, length } = sections[random(sections.length)];
        bytes[offset + random(length)] ^= 1 << random(8);
      }
      if (round > 0) {
        seal(bytes);
      }
      assert.deepEqual(await split(bytes, 1 + random(9000)), await check(bytes), `${name} round ${round}`);
    }
  }
});

test('progress is that of all threads, and reaches the end', async () => {
  const bytes = linesOf(1 << 16);
  const seen = [];
  await split(bytes, 1 << 16, { progress: (done, all) => seen.push([done, all]) });
  assert.ok(seen.every(([done, all], at) => done <= all && (at === 0 || done >= seen[at - 1][0])));
  const [done, all] = seen[seen.length - 1];
  assert.ok(Math.abs(done - all) < 1, `${done} of ${all}`);
});

test('a thread that fails ends the check, and one that does not answer can be stopped', async () => {
  const bytes = linesOf(1 << 12);
  const broken = async () => {
    throw new Error('broken');
  };
  await assert.rejects(check(bytes, { helpers: [broken], partBytes: 4096 }), /broken/);
  const own = new AbortController();
  const silent = () => {
    own.abort();
    return new Promise(() => {});
  };
  await assert.rejects(check(bytes, { helpers: [silent], partBytes: 4096, signal: own.signal }), {
    name: 'AbortError',
  });
});

test('memory is shared among threads', async () => {
  const bytes = bytesOf('u64_u64');
  const sizes = new Set();
  const helper = (task, advance) => {
    sizes.add(task.cacheBytes);
    return checkPart(new BytesSource(bytes), task, { advance });
  };
  await check(bytes, { helpers: [helper, helper, helper], partBytes: 1000 });
  assert.deepEqual([...sizes], [12 << 20]);
});

test('a step that needs more pages than are kept comes to its end', async () => {
  const bytes = linesOf(1 << 16);
  const job = new Job(new BytesSource(bytes), { cacheBytes: 128 << 10 });
  const seen = [];
  await job.each(0, 3, (number) => {
    const streams = Array.from({ length: 12 }, () => new Stream(job.pages, 1));
    const last = streams.map((stream, at) => stream.at(number * 4096 + at * 65536, 64));
    seen.push(last.length);
  });
  assert.deepEqual(seen, [12, 12, 12]);
  assert.ok(job.pages.pages.size <= 12);
});
