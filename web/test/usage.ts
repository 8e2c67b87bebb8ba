// Is compiled, not run: what callers write must fit the types of the reader.
import { BlobSource, Damage, HttpSource, Pleach, Refusal, RULES, SourceError, check } from 'pleach-reader';
import type { Finding, Key, Source, Tuple, Value } from 'pleach-reader';

export async function use(blob: Blob, bytes: Uint8Array): Promise<Finding[]> {
  const own: Source = { bytes: bytes.length, read: async (offset, length) => bytes.subarray(offset, offset + length) };
  const file = await Pleach.open(own, { verify: true, cacheBytes: 1 << 20 });
  const found: Tuple | null = await file.get(42n);
  const key: Key | null = file.parseKey('2024-01-31');
  const value: Value = found === null ? null : found.value;
  const ranks: number[] = [await file.lower('a', { by: 'trie' }), await file.upper(new Uint8Array(2))];
  for await (const tuple of file.range(key, null)) {
    ranks.push(tuple.rank);
  }
  const names: string[] = [...file.structures, file.meta.keyName, file.formatValue(value), RULES[0][0]];
  const remote: HttpSource = await HttpSource.open('https://example.org/a.pleach', { headers: { a: 'b' } });
  const report = await check(new BlobSource(blob), {
    progress: (done, all, what) => names.push(`${done / all} ${what}`),
  });
  // @ts-expect-error: there is no such structure.
  await file.lower(1, { by: 'tree' });
  return remote.bytes > 0 && report.verdict === 'damaged' ? report.findings : [];
}

export function kindOf(error: unknown): string {
  if (error instanceof Refusal) {
    return `${error.number} ${error.rule}`;
  }
  if (error instanceof Damage) {
    return `${error.code} ${error.section} ${error.offset}`;
  }
  return error instanceof SourceError ? error.kind : '';
}
