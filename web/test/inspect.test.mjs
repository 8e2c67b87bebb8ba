/**
 * The page that `pleach inspect --html` writes, in a headless Chromium: it is whole by itself, wide and narrow.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { browse, hasChromium } from './browser.mjs';

const pleach = process.env.PLEACH;
const skip = (!pleach && 'PLEACH names no binary') || (!hasChromium && 'Chromium is missing');
const folder = mkdtempSync(join(tmpdir(), 'pleach-inspect-'));
const HOSTILE = '<script>document.title="x"</script><img src=http://127.0.0.1:9/x>&"\'';
let browser;

/** Runs a command in the folder. */
function run(args, status = 0) {
  const done = spawnSync(pleach, args, { cwd: folder, encoding: 'utf8' });
  assert.equal(done.status, status, done.stderr);
}

before(async () => {
  if (skip) {
    return;
  }
  const quoted = `"${HOSTILE.replaceAll('"', '""')}"`;
  const rows = Array.from({ length: 50_000 }, (_, row) => `${row * row},${row}\n`);
  writeFileSync(join(folder, 't.csv'), `${quoted},v\n${rows.join('')}`);
  const words = Array.from({ length: 5_000 }, (_, row) => `<b>${String.fromCharCode(97 + (row % 26))}${row},x\n`);
  writeFileSync(join(folder, 'w.csv'), `word,v\n${words.join('')}`);
  run(['build', 't.csv', '-o', 'whole', '--layout', 'lines,spine,grid,fast:auto,btree', '-q']);
  run(['build', 'w.csv', '-o', 'texts', '--key-type', 'utf8', '--value-type', 'utf8', '-q']);
  const bytes = readFileSync(join(folder, 'whole'));
  bytes[20_000] ^= 1;
  writeFileSync(join(folder, 'block'), bytes);
  bytes[80] ^= 1;
  writeFileSync(join(folder, 'head'), bytes);
  writeFileSync(join(folder, 'foreign'), 'no Pleach file');
  const found = { whole: 0, texts: 0, block: 4, head: 4, foreign: 8 };
  for (const [name, status] of Object.entries(found)) {
    run(['inspect', name, '--html', `${name}.html`, '-q'], status);
  }
  browser = await browse();
});
after(async () => {
  await browser?.end();
  rmSync(folder, { recursive: true, force: true });
});

for (const name of ['whole', 'texts', 'block', 'head', 'foreign']) {
  test(`the page of a file that is "${name}"`, { skip }, async () => {
    const page = await browser.context.newPage();
    const wrong = [];
    page.on('console', (message) => wrong.push(message.text()));
    page.on('pageerror', (error) => wrong.push(String(error)));
    page.on('request', (request) => {
      if (!/^(file|data):/.test(request.url())) {
        wrong.push(request.url());
      }
    });
    const address = pathToFileURL(join(folder, `${name}.html`)).href;
    for (const [width, scheme] of [
      [1400, 'light'],
      [1400, 'dark'],
      [380, 'light'],
      [380, 'dark'],
    ]) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme: scheme });
      await page.goto(address);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${width}: the page is ${wide} wide`);
      if (process.env.PLEACH_SHOTS) {
        await page.screenshot({
          path: join(process.env.PLEACH_SHOTS, `${name}-${width}-${scheme}.png`),
          fullPage: true,
        });
      }
    }
    assert.deepEqual(wrong, []);
    assert.equal(await page.title(), `${name} - Pleach`);
    assert.equal(await page.locator('script, img, iframe, b').count(), 0);
    const state = { whole: 'whole', texts: 'whole', foreign: 'foreign' }[name] ?? 'damaged';
    assert.equal(await page.textContent('header strong'), state);
    if (name === 'whole') {
      assert.ok((await page.textContent('main')).includes(HOSTILE), 'the name is there as text');
    }
    // Each table has a caption and heads of columns or rows; each picture has a text beside it.
    for (const table of await page.locator('.scroll table').all()) {
      assert.ok((await table.locator('caption').textContent()).length > 3);
      assert.ok((await table.locator('th[scope=col]').count()) > 0);
    }
    for (const picture of await page.locator('svg[role=img]').all()) {
      assert.match((await picture.getAttribute('aria-label')) ?? '', /sections in proportion/);
    }
    // Wide tables scroll by keys.
    if (name !== 'foreign') {
      await page.keyboard.press('Tab');
      assert.equal(await page.evaluate(() => document.activeElement.getAttribute('role')), 'region');
    }
    await page.close();
  });
}
