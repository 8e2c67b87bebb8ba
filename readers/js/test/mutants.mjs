/**
 * Changes the reader in one place after the other, and looks whether the conformance kit notices.
 *
 *     node mutants.mjs [--every N] [--from N] [--file NAME] -- pleach-conformance run --level 3 -- node DRIVER
 *
 * Two kinds of changes: a condition is negated, and a check, which is a condition whose block reports or ends
 * something, never holds. DRIVER is replaced by the driver of the changed copy. Survivors are listed; some of them
 * change nothing that can be seen, such as a shorter way to the same answer.
 */
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const args = process.argv.slice(2);
const command = args.slice(args.indexOf('--') + 1);
const option = (name, other) => (args.includes(name) ? args[args.indexOf(name) + 1] : other);
const every = Number(option('--every', '1'));
const from = Number(option('--from', '0'));
const only = option('--file', '');

/** End of the text in parentheses that begins at a place. */
function closing(text, start) {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    if (text[at] === '(') {
      depth += 1;
    } else if (text[at] === ')') {
      depth -= 1;
      if (depth === 0) {
        return at;
      }
    }
  }
  throw new Error('a parenthesis has no end');
}

/** All changes of a file. */
function changesOf(name) {
  const text = readFileSync(join(root, name), 'utf8');
  const changes = [];
  for (const found of text.matchAll(/\bif \(/g)) {
    const start = found.index + 3;
    const end = closing(text, start);
    const condition = text.slice(start + 1, end);
    const line = text.slice(0, start).split('\n').length;
    const block = text.slice(end, text.indexOf('\n', text.indexOf('\n', end) + 1));
    const put = (other) => `${text.slice(0, start + 1)}${other}${text.slice(end)}`;
    changes.push({ name, line, kind: 'negated', condition, text: put(`!(${condition})`) });
    if (/throw|rule\(|wrong\(|return (false|null)|bad[A-Z]/.test(block)) {
      changes.push({ name, line, kind: 'never', condition, text: put(`false && (${condition})`) });
    }
  }
  return changes;
}

const names = ['src', 'src/check']
  .flatMap((folder) => readdirSync(join(root, folder)).map((name) => `${folder}/${name}`))
  .filter((name) => name.endsWith('.js') && !name.endsWith('source.js') && name.includes(only));
const changes = names.flatMap(changesOf).filter((_, at) => at % every === from);

/** Runs the kit on a folder. Returns true if it notices a difference. */
function isCaught(folder) {
  return new Promise((resolve) => {
    const own = command.map((word) => (word === 'DRIVER' ? join(folder, 'driver.mjs') : word));
    const run = spawn(own[0], own.slice(1), { stdio: 'ignore', detached: true });
    const timer = setTimeout(() => {
      process.kill(-run.pid, 'SIGKILL');
    }, 60_000);
    run.on('exit', (code) => {
      clearTimeout(timer);
      resolve(code !== 0);
    });
  });
}

const folder = mkdtempSync(join(tmpdir(), 'pleach-mutants-'));
cpSync(root, folder, { recursive: true });
if (await isCaught(folder)) {
  console.error('the kit complains about the reader as it is');
  process.exit(1);
}
let caught = 0;
for (const { name, line, kind, condition, text } of changes) {
  const place = join(folder, name);
  const whole = readFileSync(place, 'utf8');
  writeFileSync(place, text);
  if (await isCaught(folder)) {
    caught += 1;
  } else {
    console.log(`${name}:${line}: ${kind}: ${condition.replace(/\s+/g, ' ').slice(0, 90)}`);
  }
  writeFileSync(place, whole);
}
rmSync(folder, { recursive: true, force: true });
console.log(`${caught} of ${changes.length} changes were caught`);
