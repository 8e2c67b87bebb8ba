import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { BlobSource, HttpSource, Pleach, SourceError, check } from '../index.js';
import { FileSource } from '../node.js';
import { bytesOf } from './files.js';

const bytes = bytesOf('u64_u32');
/** How the server answers next. */
let way = 'ranges';
let requests = 0;
let server;
let url;

function answer(request, response) {
  requests += 1;
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
  const tag = way === 'replaced' && requests > 1 ? '"two"' : '"one"';
  const end = Math.min(Number(last) + 1, bytes.length);
  const headers = { etag: tag, 'content-range': `bytes ${first}-${end - 1}/${bytes.length}` };
  const body = bytes.subarray(Number(first), end);
  if (way === 'missing') {
    response.writeHead(404).end('not here');
  } else if (way === 'forbidden') {
    response.writeHead(403).end();
  } else if (way === 'whole') {
    response.writeHead(200, { etag: tag }).end(bytes);
  } else if (way === 'encoded') {
    response.writeHead(206, { ...headers, 'content-encoding': 'gzip' }).end(body);
  } else if (way === 'precondition' && requests > 1) {
    response.writeHead(request.headers['if-match'] === '"one"' ? 412 : 206, headers).end();
  } else if (way === 'other') {
    response.writeHead(206, { ...headers, 'content-range': `bytes 0-9/${bytes.length}` }).end(bytes.subarray(0, 10));
  } else if (way === 'broken') {
    response.destroy();
  } else if (way === 'failing') {
    response.writeHead(503).end();
  } else {
    response.writeHead(206, headers).end(body);
  }
}

before(async () => {
  server = createServer(answer);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${server.address().port}/table.pleach`;
});
after(() => server.close());

test('ranges of a web server are read and verified', async () => {
  way = 'ranges';
  requests = 0;
  const source = await HttpSource.open(url);
  const file = await Pleach.open(source);
  const first = await file.at(0);
  assert.equal((await file.get(first.key)).rank, 0);
  assert.equal(source.reads, requests);
  assert.ok(requests <= 12 && source.bytesRead <= 1 << 20, `${requests} reads`);
  assert.equal((await check(source)).verdict, 'clean');
});

test('what a server does wrong is told as such, never as damage', async () => {
  const cases = [
    ['whole', 'no-ranges'],
    ['encoded', 'encoded'],
    ['replaced', 'changed'],
    ['precondition', 'changed'],
    ['missing', 'missing'],
    ['forbidden', 'blocked'],
    ['other', 'no-ranges'],
    ['broken', 'network'],
    ['failing', 'status'],
  ];
  for (const [name, kind] of cases) {
    way = name;
    requests = 0;
    const read = async () => {
      const file = await Pleach.open(await HttpSource.open(url));
      await file.at(file.tuples - 1);
    };
    await assert.rejects(read(), (error) => {
      assert.ok(error instanceof SourceError, `${name}: ${error?.stack}`);
      assert.equal(error.kind, kind, name);
      return true;
    });
  }
});

test('a server that is not there is a network failure', async () => {
  await assert.rejects(HttpSource.open('http://127.0.0.1:1/x.pleach'), { name: 'SourceError', kind: 'network' });
});

test('a source that gives too few bytes is told as such', async () => {
  const short = new BlobSource(new Blob([bytes.subarray(0, 20000)]));
  short.bytes = bytes.length;
  await assert.rejects(check(short), { name: 'SourceError', kind: 'read' });
});

test('blobs are read by slices, in bounded memory', async () => {
  const source = new BlobSource(new Blob([bytes]));
  const file = await Pleach.open(source, { cacheBytes: 0 });
  for (let rank = 0; rank < file.tuples; rank += 13) {
    const { key } = await file.at(rank);
    assert.ok((await file.get(key)).rank <= rank);
  }
  assert.ok(file.blocks.cache.size <= 64);
});

test('files of node are read by position, beyond 4 GiB', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pleach-source-'));
  const path = join(folder, 'a.pleach');
  writeFileSync(path, bytes);
  let source = await FileSource.open(path);
  assert.equal((await check(source)).verdict, 'clean');
  truncateSync(path, 20000);
  await assert.rejects(check(source), { name: 'SourceError', kind: 'changed' });
  await source.close();
  truncateSync(path, 5 * 2 ** 30);
  source = await FileSource.open(path);
  assert.equal(source.bytes, 5 * 2 ** 30);
  assert.deepEqual(await source.read(5 * 2 ** 30 - 8, 8), new Uint8Array(8));
  await assert.rejects(source.read(5 * 2 ** 30 - 8, 9), { name: 'SourceError', kind: 'read' });
  await source.close();
  rmSync(folder, { recursive: true });
});
