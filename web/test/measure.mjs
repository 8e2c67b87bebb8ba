/**
 * Measures the page: `node measure.mjs FILE [KEY] [check]`. Prints times, reads, memory and the speed of a check.
 *
 * Memory is the proportional share (PSS) of all processes of the browser, so shared pages are counted once.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { browse } from './browser.mjs';

const [, , path, key = '', mode = ''] = process.argv;

/** Processes whose command line names the profile, and their descendants. */
function processesOf(profile) {
  const parents = new Map();
  const own = new Set();
  for (const name of readdirSync('/proc').filter((it) => /^\d+$/.test(it))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      parents.set(name, stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
      if (readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(profile)) {
        own.add(name);
      }
    } catch {
      // It has ended.
    }
  }
  for (let round = 0; round < 5; round++) {
    for (const [name, parent] of parents) {
      if (own.has(parent)) {
        own.add(name);
      }
    }
  }
  return own;
}

/** Megabytes of all processes of the browser. */
function megabytes(profile) {
  let sum = 0;
  for (const name of processesOf(profile)) {
    try {
      sum += Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${name}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
    } catch {
      // It has ended.
    }
  }
  return sum / 1000;
}

/** Seconds of processors that all processes of the browser have had. On a busy machine they say more than a clock. */
function processorSeconds(profile) {
  let ticks = 0;
  for (const name of processesOf(profile)) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      ticks += Number(fields[11]) + Number(fields[12]);
    } catch {
      // It has ended.
    }
  }
  return ticks / 100;
}

const { context, end, profile } = await browse();
const page = await context.newPage();
await page.goto(new URL('../index.html', import.meta.url).href);
await page.waitForTimeout(3000);
const empty = megabytes(profile);
console.log(`empty page: ${empty.toFixed(0)} MB in all processes`);
const tell = async (what) => {
  await page.waitForTimeout(1000);
  console.log(`${what}: ${(megabytes(profile) - empty).toFixed(0)} MB above the empty page`);
};
const text = (id) => page.textContent(`#${id}`);

const started = performance.now();
await page.setInputFiles('#file', path);
await page.waitForFunction(
  () => document.getElementById('facts').textContent !== '' && document.getElementById('busy').textContent === '',
  null,
  { timeout: 60000 },
);
const wall = (performance.now() - started).toFixed(0);
console.log(`opened in ${wall} ms; by the page itself ${/opened in \d+ ms/.exec(await text('facts'))[0]}`);
await tell('after opening');
const shown = key || /from, to(\S+)/.exec(await text('facts'))[1];
await page.fill('#key', shown);
await page.keyboard.press('Enter');
await page.waitForFunction(() => document.getElementById('found').textContent !== '');
console.log(`first key ${shown}: ${await text('found')}`);
await tell('after the first key');
if (mode === 'check') {
  await page.evaluate(() => {
    window.longest = 0;
    let last = performance.now();
    const tick = (now) => {
      window.longest = Math.max(window.longest, now - last);
      last = now;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  const before = processorSeconds(profile);
  await page.click('#check');
  await page.waitForFunction(() => document.getElementById('verdict').textContent !== '', null, { timeout: 600000 });
  const spent = processorSeconds(profile) - before;
  console.log(`check: ${await text('verdict')}; ${spent.toFixed(1)} s of processors`);
  console.log(`longest time without a frame: ${(await page.evaluate(() => window.longest)).toFixed(0)} ms`);
  await tell('after the check');
}
await end();
