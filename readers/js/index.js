/**
 * A reader of Pleach files for browsers and node, without dependencies.
 */
export { Pleach } from './src/pleach.js';
export { check, checkPart } from './src/check.js';
export { BlobSource, BytesSource, HttpSource } from './src/source.js';
export { Damage, Refusal, RULES, SourceError } from './src/error.js';
