/**
 * Files for tests: the golden ones.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../../../tests/data/v1.0/', import.meta.url));

/** Names of all golden files. */
export const names = readdirSync(folder)
  .filter((name) => name.endsWith('.pleach'))
  .map((name) => name.slice(0, -7));

/** Bytes of a golden file. */
export const bytesOf = (name) => new Uint8Array(readFileSync(`${folder}${name}.pleach`));

/** Path of a golden file. */
export const pathOf = (name) => `${folder}${name}.pleach`;
