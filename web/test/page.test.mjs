/**
 * The page in a headless Chromium, from a folder: real clicks and keys, on valid and on broken files.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { bytesOf, names } from '../../readers/js/test/files.js';
import { linesOf, seal, sealHead, sectionsOf } from '../../readers/js/test/forge.js';
import { Pleach } from '../../readers/js/index.js';
import { browse, hasChromium } from './browser.mjs';

const skip = !hasChromium && 'Chromium is missing';
const address = new URL('../index.html', import.meta.url).href;
const folder = mkdtempSync(join(tmpdir(), 'pleach-files-'));
let browser;
let page;
const errors = [];

before(async () => {
  if (skip) {
    return;
  }
  browser = await browse({ viewport: { width: 1100, height: 900 } });
  page = await browser.context.newPage();
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') {
      errors.push(message.text());
    }
  });
});
after(async () => {
  await browser?.end();
  rmSync(folder, { recursive: true, force: true });
});

/** Writes a file of these bytes and chooses it. */
async function choose(name, bytes) {
  const path = join(folder, `${name}.pleach`);
  writeFileSync(path, bytes);
  await page.goto(address);
  await page.setInputFiles('#file', path);
  await page.waitForFunction(
    () => document.title !== 'Pleach file' && document.getElementById('busy').textContent === '',
  );
}

const text = (id) => page.textContent(`#${id}`);

/** Clicks, and waits for what appears. */
async function check() {
  await page.click('#check');
  await page.waitForFunction(() => document.getElementById('verdict').textContent !== '');
  const codes = await page.$$eval('#findings tbody tr td:first-child', (cells) =>
    cells.map((cell) => cell.textContent),
  );
  return { verdict: await text('verdict'), codes };
}

test('a file shows its sections, finds keys by keyboard, and is intact', { skip }, async () => {
  await choose('u64_u64', bytesOf('u64_u64'));
  assert.match(await text('facts'), /u64.*1,002, keys may repeat/s);
  assert.match(await text('privacy'), /stays on this machine/);
  const tags = await page.$$eval('#sections tbody tr td:first-child', (cells) => cells.map((cell) => cell.textContent));
  assert.deepEqual(tags, ['', ...sectionsOf(bytesOf('u64_u64')).map((it) => it.name), '']);
  const shares = await page.$$eval('#map span', (parts) =>
    parts.reduce((sum, part) => sum + parseFloat(part.style.flexBasis), 0),
  );
  assert.ok(Math.abs(shares - 100) < 0.1, `${shares}`);
  await page.focus('#key');
  await page.keyboard.type('18446744073709551615');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.getElementById('found').textContent !== '');
  assert.match(await text('found'), /stands 2 times.*1,00018446744073709551615/s);
  await page.fill('#key', '1');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.getElementById('found').textContent.includes('Absent'));
  assert.match(await text('found'), /rank 2/);
  await page.fill('#key', 'abc');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#message:not([hidden])');
  assert.match(await text('message'), /“abc” is not a key of type u64/);
  const { verdict, codes } = await check();
  assert.match(verdict, /The file is intact/);
  assert.deepEqual(codes, []);
});

test('a key inside of an interval is found by its beginning', { skip }, async () => {
  await choose('intervals', bytesOf('intervals'));
  for (const [key, answer] of [
    ['0.0.0.5', /inside of the interval.*0\.0\.0\.0/s],
    ['0.0.0.10', /Absent/],
  ]) {
    await page.fill('#key', key);
    await page.keyboard.press('Enter');
    await page.waitForFunction(
      (asked) =>
        document.getElementById('busy').textContent === '' &&
        asked === document.getElementById('key').value &&
        document.getElementById('found').textContent !== '',
      key,
    );
    assert.match(await text('found'), answer);
  }
});

test('ranges have pages', { skip }, async () => {
  await choose('delta8', bytesOf('delta8'));
  await page.fill('#from', '1010');
  await page.fill('#to', '1100');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#page:not([hidden])');
  const keys = () =>
    page.$$eval('#tuples tbody tr td:nth-child(2)', (cells) => cells.map((cell) => Number(cell.textContent)));
  const file = await Pleach.open(bytesOf('delta8'));
  const all = [];
  for await (const { key } of file.range(1010, 1100)) {
    all.push(key);
  }
  assert.deepEqual(await keys(), all.slice(0, 50));
  assert.equal(await page.isDisabled('#previous'), true);
  await page.click('#next');
  await page.waitForFunction(
    (first) => document.querySelector('#tuples td:nth-child(2)').textContent === first,
    String(all[50]),
  );
  assert.deepEqual(await keys(), all.slice(50, 100));
  await page.click('#previous');
  await page.waitForFunction(
    (first) => document.querySelector('#tuples td:nth-child(2)').textContent === first,
    String(all[0]),
  );
});

test('all types are shown, looked up and sampled', { skip }, async () => {
  for (const name of names) {
    const bytes = bytesOf(name);
    await choose(name, bytes);
    const file = await Pleach.open(bytes);
    assert.equal(await page.isHidden('#message'), true, name);
    if (file.tuples === 0) {
      continue;
    }
    const { key } = await file.at(Math.floor(file.tuples / 2));
    if (file.meta.approximate === '') {
      await page.fill('#key', file.formatKey(key));
      await page.keyboard.press('Enter');
      await page.waitForFunction(() => document.getElementById('found').textContent !== '');
      assert.match(await text('found'), /Found|stands/, name);
    }
    await page.click('#sample');
    await page.waitForSelector('figure');
  }
});

test('broken files show their refusal, and the page goes on', { skip }, async () => {
  const entry = (index, at, byte) => (it) =>
    sealHead(it.fill(byte, 4096 + 128 * index + at, 4096 + 128 * index + at + 1));
  const cases = [
    ['magic', 1, (it) => it.fill(0, 0, 1)],
    ['truncated', 2, (it) => it.slice(0, it.length - 4096)],
    ['superblock-sum', 3, (it) => it.fill(1, 70, 71)],
    ['version', 4, (it) => sealHead(it.fill(2, 16, 17))],
    ['extended', 6, (it) => Uint8Array.of(...it, ...new Uint8Array(4096))],
    ['alignment', 15, entry(2, 8, 1)],
    ['flags', 20, entry(0, 4, 2)],
    ['line-length', 32, entry(1, 24, 1)],
    ['spine', 34, entry(2, 56 + 12, 3)],
  ];
  for (const [rule, number, change] of cases) {
    await choose(rule, change(bytesOf('u64_u64')));
    assert.ok(
      (await text('message')).startsWith(`The file is refused by rule ${number}, ${rule}: `),
      await text('message'),
    );
    assert.equal(await page.isVisible('#facts'), false, rule);
    if (rule !== 'magic') {
      assert.match((await check()).verdict, /damaged|does not know/, rule);
    }
  }
  await choose('upgrade', sealHead(bytesOf('u64_u64').fill(0, 16, 17).fill(13, 18, 19)));
  assert.match(await text('message'), /pleach upgrade FILE/);
});

test('damage is found where it is read, and by the check', { skip }, async () => {
  const bytes = bytesOf('u64_u64');
  const line = sectionsOf(bytes).find((it) => it.name === 'LINE');
  bytes[line.offset + 33] ^= 8;
  await choose('flipped', bytes);
  assert.match(await text('message'), /^The file is damaged \(block\): LINE is damaged at byte \d+/);
  assert.deepEqual((await check()).codes, ['block']);
  const forged = bytesOf('u64_u64');
  new DataView(forged.buffer).setBigUint64(line.offset + 64, 0n, true);
  await choose('order', seal(forged));
  const { verdict, codes } = await check();
  assert.match(verdict, /damaged/);
  assert.equal(codes[0], 'order');
});

test('a check of a large file shows progress, leaves the page responsive, and can be cancelled', { skip }, async () => {
  await choose('large', linesOf(4 << 20));
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
  // The page itself clicks, since the check may be over before a click from outside comes.
  const seen = await page.evaluate(
    () =>
      new Promise((resolve) => {
        const at = (id) => document.getElementById(id);
        new MutationObserver((_, observer) => {
          if (at('bar').value > 0.1) {
            observer.disconnect();
            resolve([at('progress-text').textContent, at('cancel').hidden]);
            at('cancel').click();
          }
        }).observe(at('progress-text'), { childList: true });
        at('check').click();
      }),
  );
  assert.match(seen[0], /^\d+%: tuple lines, \d+ MB\/s$/);
  assert.equal(seen[1], false);
  await page.waitForFunction(() => document.getElementById('verdict').textContent.includes('cancelled'));
  assert.equal(await page.isVisible('#cancel'), false);
  assert.match((await check()).verdict, /The file is intact/);
  const longest = await page.evaluate(() => window.longest);
  assert.ok(longest < 500, `the page stood still for ${longest} ms`);
});

test('everything can be reached by the keyboard, and has a name', { skip }, async () => {
  await choose('u64_u64', bytesOf('u64_u64'));
  const reached = new Set();
  await page.evaluate(() => document.body.focus());
  for (let press = 0; press < 25; press++) {
    await page.keyboard.press('Tab');
    reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.textContent));
  }
  for (const id of ['file', 'url', 'key', 'from', 'to', 'sample', 'check']) {
    assert.ok(reached.has(id), `${id}: ${[...reached].join(', ')}`);
  }
  const nameless = await page.$$eval('input, button, progress, [role="img"], [role="region"]', (all) =>
    all
      .filter((it) => {
        const label = it.labels?.length > 0 || it.getAttribute('aria-label') || it.getAttribute('aria-labelledby');
        return !label && it.textContent.trim() === '';
      })
      .map((it) => it.outerHTML),
  );
  assert.deepEqual(nameless, []);
});

test('nothing is wider than a narrow screen, in light and dark', { skip }, async () => {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width: 340, height: 700 });
    await choose('utf8_tails_u32', bytesOf('utf8_tails_u32'));
    await page.click('#range button');
    await page.waitForSelector('#page:not([hidden])');
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `${colorScheme}: ${over} pixels too wide`);
    const [ground, letters] = await page.evaluate(() => {
      const style = getComputedStyle(document.body);
      return [style.backgroundColor, style.color].map((it) =>
        it
          .match(/\d+/g)
          .slice(0, 3)
          .reduce((sum, part) => sum + Number(part), 0),
      );
    });
    assert.equal(ground > letters, colorScheme === 'light');
  }
  await page.setViewportSize({ width: 1100, height: 900 });
});

test('the page may connect to nothing, and no script has failed', { skip }, async () => {
  await page.goto(address);
  const found = await page.evaluate(() =>
    fetch('http://127.0.0.1:9/').then(
      () => 'sent',
      () => 'refused',
    ),
  );
  assert.equal(found, 'refused');
  const blocked = errors.filter((error) => /Content Security Policy/.test(error));
  assert.ok(blocked.length > 0, 'the policy refused it');
  assert.deepEqual(
    errors.filter((error) => !blocked.includes(error) && !/ERR_|Failed to fetch/.test(error)),
    [],
  );
});
