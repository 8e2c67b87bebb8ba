/**
 * META: names, logical types and what else a file says of itself.
 */

const NAMES = ['', 'keyName', 'valueName', 'keyLogical', 'valueLogical', 'layout', 'interval', 'approximate'];
const TEXT_BYTES_MAX = 65536;
const LOSSY = new TextDecoder('utf-8', { ignoreBOM: true });
const STRICT = new TextDecoder('utf-8', { ignoreBOM: true, fatal: true });

/**
 * Reports whether bytes are UTF-8.
 * @param {Uint8Array} bytes
 */
export function isUtf8(bytes) {
  let at = 0;
  while (at < bytes.length && bytes[at] < 128) {
    at += 1;
  }
  if (at === bytes.length) {
    return true;
  }
  try {
    STRICT.decode(bytes);
    return true;
  } catch {
    return false;
  }
}

/** @param {Uint8Array} bytes */
export const textOf = (bytes) => LOSSY.decode(bytes);

/**
 * @typedef {{keyName: string, valueName: string, keyLogical: string, valueLogical: string, layout: string,
 *   interval: string, approximate: string}} Meta
 */

/**
 * Reads the records. What follows a record that is not whole is left out.
 * @param {Uint8Array} bytes
 * @returns {Meta}
 */
export function readMeta(bytes) {
  /** @type {Record<string, string>} */
  const meta = Object.fromEntries(NAMES.slice(1).map((name) => [name, '']));
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  while (at + 8 <= bytes.length) {
    const [tag, length] = [view.getUint16(at, true), view.getUint32(at + 4, true)];
    if (length > TEXT_BYTES_MAX || at + 8 + length > bytes.length) {
      break;
    }
    if (NAMES[tag]) {
      meta[NAMES[tag]] = textOf(bytes.subarray(at + 8, at + 8 + length));
    }
    at += 8 + Math.ceil(length / 8) * 8;
  }
  return /** @type {Meta} */ (meta);
}

/**
 * Walks over the records, for a check: calls `found` with the place of each and the rule that it breaks, if any.
 * Returns the number of records.
 * @param {Uint8Array} bytes
 * @param {(at: number, fault: string) => void} found
 */
export function walkMeta(bytes, found) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  let records = 0;
  while (at < bytes.length) {
    const length = at + 8 <= bytes.length ? view.getUint32(at + 4, true) : Infinity;
    const end = at + 8 + length;
    if (length > TEXT_BYTES_MAX || end > bytes.length || !isUtf8(bytes.subarray(at + 8, end))) {
      found(at, 'records must be whole');
      return null;
    }
    const next = at + 8 + Math.ceil(length / 8) * 8;
    const isPadded = next <= bytes.length && bytes.subarray(end, next).every((byte) => byte === 0);
    if (!isPadded || bytes[at + 2] !== 0 || bytes[at + 3] !== 0) {
      found(at, 'records must be padded with zeros');
    }
    at = next;
    records += 1;
  }
  return records;
}
