/**
 * Every broken file of the conformance kit in the page: the refusal by its rule, or what the check finds first.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { browse, hasChromium } from './browser.mjs';

const kit = process.env.PLEACH_VECTORS || fileURLToPath(new URL('../../spec/vectors', import.meta.url));
const folder = join(kit, 'broken');
const skip = (!hasChromium && 'Chromium is missing') || (!existsSync(folder) && 'the conformance kit is missing');
let browser;
let page;

before(async () => {
  if (!skip) {
    browser = await browse();
    page = await browser.context.newPage();
    await page.goto(new URL('../index.html', import.meta.url).href);
  }
});
after(() => browser?.end());

/** Chooses a file, and waits until it has been looked at. */
async function choose(path, name) {
  await page.setInputFiles('#file', path);
  await page.waitForFunction(
    (title) => document.title.startsWith(title) && document.getElementById('busy').textContent === '',
    `${name}.pleach`,
  );
}

test('broken files of the kit show what they break', { skip }, async () => {
  const sheets = readdirSync(folder).filter((name) => name.endsWith('.json'));
  assert.ok(sheets.length >= 40, `${sheets.length} files`);
  const wrong = [];
  for (const sheet of sheets) {
    const name = sheet.slice(0, -5);
    const { rule, code } = JSON.parse(readFileSync(join(folder, sheet), 'utf8'));
    await choose(join(folder, `${name}.pleach`), name);
    const message = await page.textContent('#message');
    if (rule) {
      if (!new RegExp(`^The file is refused by rule \\d+, ${rule}: `).test(message)) {
        wrong.push(`${name}: ${rule}, not ${message}`);
      }
      continue;
    }
    await page.click('#check');
    await page.waitForFunction(() => document.getElementById('verdict').textContent !== '');
    const found = await page.textContent('#findings tbody tr td');
    if (found !== code) {
      wrong.push(`${name}: ${code}, not ${found}`);
    }
  }
  assert.deepEqual(wrong, []);
});
