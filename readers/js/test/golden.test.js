import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { Pleach, check } from '../index.js';
import { compareBytes } from '../src/mask.js';
import { bytesOf, names, pathOf } from './files.js';

/** The command line, which knows the truth. */
const PLEACH = process.env.PLEACH ?? '';

/** Compares two keys of one type. */
function compare(one, other) {
  if (one instanceof Uint8Array) {
    return compareBytes(one, other);
  }
  if (typeof one === 'string') {
    return Buffer.compare(Buffer.from(one), Buffer.from(other));
  }
  return one < other ? -1 : one > other ? 1 : 0;
}

/** A key near another one: mostly absent. */
function near(key) {
  if (key instanceof Uint8Array) {
    return Uint8Array.of(...key, 0);
  }
  if (typeof key === 'string') {
    return `${key.slice(0, -1)}~`;
  }
  return typeof key === 'bigint' ? key + 1n : key + 1;
}

for (const name of names) {
  test(`${name}: every way finds every key, and the check is clean`, async () => {
    const bytes = bytesOf(name);
    const file = await Pleach.open(bytes);
    const tuples = [];
    for await (const tuple of file.ranks(0, file.tuples)) {
      tuples.push(tuple);
    }
    assert.equal(tuples.length, file.tuples);
    const keys = tuples.map((tuple) => tuple.key);
    const step = Math.max(Math.floor(keys.length / 60), 1);
    for (let at = 0; at < keys.length; at += step) {
      for (const key of [keys[at], near(keys[at])]) {
        let lower;
        try {
          lower = await file.lower(key);
        } catch (error) {
          // The key after the largest one of the type.
          assert.ok(error instanceof TypeError);
          continue;
        }
        const below = keys.filter((one) => compare(one, key) < 0).length;
        const equal = keys.filter((one) => compare(one, key) === 0).length;
        assert.equal(lower, below);
        assert.equal(await file.upper(key), below + equal);
        for (const by of file.structures) {
          assert.equal(await file.lower(key, { by }), below, by);
        }
        assert.equal((await file.get(key))?.rank ?? null, equal > 0 ? below : null);
        assert.equal((await file.floor(key))?.rank ?? null, below + equal > 0 ? below + equal - 1 : null);
      }
      const text = file.formatKey(keys[at]);
      if (file.meta.approximate === '') {
        assert.equal(compare(file.parseKey(text), keys[at]), 0, text);
      }
    }
    const report = await check(bytes);
    assert.deepEqual([report.verdict, report.findings, report.tuples], ['clean', [], file.tuples]);
  });
}

const escaped = (text) =>
  text.replace(/[\\\t\n\r]/g, (it) => ({ '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' })[it]);

const isThere = PLEACH !== '' && existsSync(PLEACH);
test(
  'all tuples are those that the command line prints',
  { skip: !isThere && 'set PLEACH to the command line' },
  async () => {
    let compared = 0;
    for (const name of names) {
      const file = await Pleach.open(bytesOf(name));
      if (file.record) {
        continue;
      }
      const run = spawnSync(PLEACH, ['range', pathOf(name), '..', '..'], { encoding: 'utf8', maxBuffer: 1 << 28 });
      if (run.status !== 0 && /upgrade/.test(run.stderr)) {
        continue;
      }
      assert.equal(run.status, 0, run.stderr);
      const lines = run.stdout.split('\n').filter(Boolean);
      assert.equal(lines.length, file.tuples);
      for await (const { rank, key, value } of file.ranks(0, file.tuples)) {
        const shown = [file.keyType === 'utf8' ? escaped(file.formatKey(key)) : file.formatKey(key)];
        if (value !== null) {
          shown.push(file.valueType === 'utf8' ? escaped(value) : file.formatValue(value));
        }
        assert.equal(shown.join('\t'), lines[rank], name);
        compared += 1;
      }
    }
    assert.ok(compared > 0, 'no file was compared');
  },
);
