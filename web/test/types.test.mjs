import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as reader from '../../readers/js/index.js';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const compiler = here('../node_modules/typescript/bin/tsc');
const skip = !existsSync(compiler) && 'run npm ci in web/ for the TypeScript compiler';

function compile(project) {
  const run = spawnSync(process.execPath, [compiler, '-p', here(project)], { encoding: 'utf8' });
  assert.equal(run.status, 0, run.stdout + run.stderr);
}

test('the sources of the reader keep their types', { skip }, () => compile('tsconfig.sources.json'));
test('callers fit the declared types', { skip }, () => compile('tsconfig.usage.json'));

test('what is declared is exported, and the other way round', () => {
  const declared = readFileSync(here('../../readers/js/pleach.d.ts'), 'utf8').matchAll(
    /^export (?:class|function|const) (\w+)/gm,
  );
  assert.deepEqual(Array.from(declared, (found) => found[1]).sort(), Object.keys(reader).sort());
});

test('the page is made of its sources', () => {
  const run = spawnSync(process.execPath, [here('../build.mjs'), '--check'], { encoding: 'utf8' });
  assert.equal(run.status, 0, run.stderr);
});

const formatter = here('../node_modules/prettier/bin/prettier.cjs');
const sources = ['build.mjs', 'src', 'test', '../readers/js/*.js', '../readers/js/*.mjs', '../readers/js/*.ts'];
test(
  'sources are formatted, and narrow',
  { skip: !existsSync(formatter) && 'run npm ci in web/ for the formatter' },
  () => {
    const args = [
      '--config',
      '.prettierrc.json',
      '--check',
      '../readers/js/src',
      '../readers/js/test',
      ...sources,
      '!src/index.html',
    ];
    const run = spawnSync(process.execPath, [formatter, ...args], { encoding: 'utf8', cwd: here('..') });
    assert.equal(run.status, 0, run.stdout + run.stderr);
  },
);
