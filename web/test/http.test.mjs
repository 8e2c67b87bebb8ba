/**
 * Files on a web server, read by range requests: by the page in a headless Chromium, from nginx.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { linesOf } from '../../readers/js/test/forge.js';
import { bytesOf } from '../../readers/js/test/files.js';
import { browse, hasChromium } from './browser.mjs';

const NGINX = process.env.NGINX ?? '/usr/sbin/nginx';
const skip = (!existsSync(NGINX) && 'nginx is missing') || (!hasChromium && 'Chromium is missing');
const folder = mkdtempSync(join(tmpdir(), 'pleach-http-'));
const files = join(folder, 'files');
let own;
let other;
let server;
let browser;
let page;

/** A port that nothing listens on. */
async function freePort() {
  const listener = createServer();
  await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const { port } = listener.address();
  await new Promise((resolve) => listener.close(resolve));
  return port;
}

const places = (extra) => `
    location /ranges/ { alias ${files}/; ${extra} }
    location /whole/ { alias ${files}/; max_ranges 0; ${extra} }
    location /encoded/ { alias ${files}/; add_header Content-Encoding gzip always; ${extra} }
    location /gzip/ { alias ${files}/; gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any; ${extra} }
    location /index.html { alias ${files}/index.html; }`;

before(async () => {
  if (skip) {
    return;
  }
  mkdirSync(files);
  mkdirSync(join(folder, 'temp'));
  copyFileSync(fileURLToPath(new URL('../index.html', import.meta.url)), join(files, 'index.html'));
  writeFileSync(join(files, 'u64_u64.pleach'), bytesOf('u64_u64'));
  writeFileSync(join(files, 'utf8_u32_text.pleach'), bytesOf('utf8_u32_text'));
  [own, other] = [await freePort(), await freePort()];
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/temp;`)
    .join(' ');
  // Workers of a server that root starts would be another user, who may not read the folder.
  const user = process.getuid() === 0 ? `user ${userInfo().username};` : '';
  writeFileSync(
    join(folder, 'nginx.conf'),
    `${user} daemon off; pid ${folder}/pid; error_log ${folder}/error.log;
worker_processes 1; events { worker_connections 64; }
http {
  access_log off; ${temp} types { text/html html; } default_type application/vnd.pleach;
  server { listen 127.0.0.1:${own}; ${places('')} }
  server { listen 127.0.0.1:${other}; ${places('')}
    location /open/ { alias ${files}/; add_header Access-Control-Allow-Origin *; }
    location /shown/ { alias ${files}/; add_header Access-Control-Allow-Origin *;
      add_header Access-Control-Expose-Headers "Content-Range, ETag"; }
  }
}
`,
  );
  const args = ['-c', join(folder, 'nginx.conf'), '-p', folder, '-e', join(folder, 'error.log')];
  assert.equal(spawnSync(NGINX, ['-t', ...args]).status, 0, 'the configuration of nginx');
  server = spawn(NGINX, args, { stdio: 'ignore' });
  for (let round = 0; round < 100; round++) {
    const answer = await fetch(`http://127.0.0.1:${own}/index.html`).catch(() => null);
    if (answer?.ok) {
      break;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  browser = await browse();
  page = await browser.context.newPage();
});
after(async () => {
  await browser?.end();
  if (server) {
    const ended = new Promise((resolve) => server.once('exit', resolve));
    server.kill('SIGTERM');
    await ended;
  }
  rmSync(folder, { recursive: true, force: true });
});

/** Opens the page for a file on the server. */
async function open(url) {
  await page.goto(`http://127.0.0.1:${own}/index.html?url=${encodeURIComponent(url)}`);
  await page.waitForFunction(
    () =>
      document.getElementById('busy').textContent === '' &&
      (!document.getElementById('message').hidden || document.getElementById('facts').textContent !== ''),
  );
}

const text = (id) => page.textContent(`#${id}`);

async function lookUp(key) {
  await page.fill('#key', key);
  await page.keyboard.press('Enter');
  await page.waitForFunction(
    () =>
      document.getElementById('busy').textContent === '' &&
      (document.getElementById('found').textContent !== '' || !document.getElementById('message').hidden),
  );
}

test('a file is read by ranges, looked up and checked', { skip }, async () => {
  await open('/ranges/u64_u64.pleach');
  assert.equal(await page.isHidden('#message'), true, await text('message'));
  assert.match(await text('privacy'), new RegExp(`http://127.0.0.1:${own} alone`));
  await lookUp('18446744073709551615');
  assert.match(await text('found'), /stands 2 times/);
  await page.click('#check');
  await page.waitForFunction(() => document.getElementById('verdict').textContent !== '');
  assert.match(await text('verdict'), /The file is intact/);
});

test('a server that could compress sends ranges as they are', { skip }, async () => {
  await open('/gzip/u64_u64.pleach');
  assert.equal(await page.isHidden('#message'), true, await text('message'));
});

test('the field opens an address', { skip }, async () => {
  await page.goto(`http://127.0.0.1:${own}/index.html`);
  await page.fill('#url', `http://127.0.0.1:${own}/ranges/utf8_u32_text.pleach`);
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.getElementById('facts')?.textContent.includes('utf8'));
});

test('what a server does wrong is one sentence, and never damage', { skip }, async () => {
  const cases = [
    ['/whole/u64_u64.pleach', /\(no-ranges\): the server sends the whole file .* \(200 in place of 206\)/],
    ['/encoded/u64_u64.pleach', /\(encoded\): the server compresses the file on its way \(content-encoding: gzip\)/],
    ['/ranges/nothing.pleach', /\(missing\): the server has no file of this name \(404\)/],
    [`http://127.0.0.1:${other}/ranges/u64_u64.pleach`, /\(network\): .* Access-Control-Allow-Origin/],
    [`http://127.0.0.1:${await freePort()}/u64_u64.pleach`, /\(network\): the server did not answer/],
    ['ftp://127.0.0.1/u64_u64.pleach', /not the address of a file on a web server/],
  ];
  for (const [url, sentence] of cases) {
    await open(url);
    const found = await text('message');
    assert.match(found, sentence, url);
    assert.doesNotMatch(found, /damage|refused by rule/, url);
    assert.equal(found.trim().split(/\.\s/).length, 1, `one sentence: ${found}`);
  }
});

test('pages of other origins read files of servers that allow it', { skip }, async () => {
  for (const place of ['open', 'shown']) {
    await open(`http://127.0.0.1:${other}/${place}/u64_u64.pleach`);
    assert.equal(await page.isHidden('#message'), true, await text('message'));
    await lookUp('18446744073709551615');
    assert.match(await text('found'), /stands 2 times/);
  }
});

test('the page connects to the server of its file alone', { skip }, async () => {
  await open('/ranges/u64_u64.pleach');
  const found = await page.evaluate(
    (url) =>
      fetch(url).then(
        () => 'sent',
        () => 'refused',
      ),
    `http://127.0.0.1:${other}/open/u64_u64.pleach`,
  );
  assert.equal(found, 'refused');
});

test('a file that is replaced midway is told as such', { skip }, async () => {
  const path = join(files, 'changing.pleach');
  const large = linesOf(1 << 18);
  const replace = (time) => {
    writeFileSync(path, large);
    utimesSync(path, time, time);
  };
  for (const [round, url] of ['/ranges/changing.pleach', `http://127.0.0.1:${other}/open/changing.pleach`].entries()) {
    replace(1_600_000_000 + 100 * round);
    await open(url);
    assert.equal(await page.isHidden('#message'), true, await text('message'));
    replace(1_700_000_000 + 100 * round);
    await lookUp('700003');
    assert.match(
      await text('message'),
      /\(changed\): the file on the server was replaced while it was read: open it again/,
    );
    assert.doesNotMatch(await text('message'), /damage/);
  }
});
