/**
 * Files for tests: the golden ones of the last version before 1.0, as version 1.0.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { upgraded } from './forge.js';

const folder = fileURLToPath(new URL('../../../tests/data/v0.13/', import.meta.url));

/** Names of all golden files. */
export const names = readdirSync(folder)
  .filter((name) => name.endsWith('.pleach'))
  .map((name) => name.slice(0, -7));

/** Bytes of a golden file, as version 1.0. */
export const bytesOf = (name) => upgraded(new Uint8Array(readFileSync(`${folder}${name}.pleach`)));

/** Path of a golden file as it is. */
export const pathOf = (name) => `${folder}${name}.pleach`;
