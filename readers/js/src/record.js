/**
 * Records: values of several fields, as the logical type `record<name: kind, ...>` describes them.
 */
import { isUtf8, textOf } from './meta.js';

/** Kinds of numbers in fields and parts: bytes, and how they are read. */
const NUMBERS = new Map([
  ['u8', 1],
  ['u16', 2],
  ['u32', 4],
  ['u64', 8],
  ['i8', 1],
  ['i16', 2],
  ['i32', 4],
  ['i64', 8],
  ['f32', 4],
  ['f64', 8],
]);

/**
 * @typedef {{name: string, kind: string, logical: string, offset: number, bytes: number, isText: boolean}} Field
 * @typedef {{fields: Field[], bytes: number, hasTexts: boolean}} Record
 */

/**
 * Reads a text in quotes. Returns it, and what follows it; null if there is none.
 * @param {string} text
 * @returns {[string, string] | null}
 */
function unquoted(text) {
  if (text[0] !== '"') {
    return null;
  }
  let plain = '';
  for (let at = 1; at < text.length; at++) {
    if (text[at] === '"') {
      return [plain, text.slice(at + 1)];
    }
    if (text[at] === '\\') {
      at += 1;
      if (text[at] !== '"' && text[at] !== '\\') {
        return null;
      }
    }
    plain += text[at];
  }
  return null;
}

/** @param {string} text */
const quoted = (text) => `"${text.replace(/["\\]/g, '\\$&')}"`;

/**
 * Reads the list `name: kind "logical", ...` of a record or a composite key between `start` and `>`. A list has
 * exactly one text: null if it is another.
 * @param {string} text
 * @param {string} start
 * @returns {{name: string, kind: string, logical: string}[] | null}
 */
export function readList(text, start) {
  if (!text.startsWith(start)) {
    return null;
  }
  let rest = text.slice(start.length);
  const entries = [];
  for (;;) {
    let name;
    if (rest[0] === '"') {
      const found = unquoted(rest);
      if (!found) {
        return null;
      }
      [name, rest] = found;
    } else {
      name = /^[A-Za-z_][A-Za-z0-9_]*/.exec(rest)?.[0];
      if (name === undefined) {
        return null;
      }
      rest = rest.slice(name.length);
    }
    const kind = /^: ([a-z]+[0-9]*)/.exec(rest);
    if (!kind) {
      return null;
    }
    rest = rest.slice(kind[0].length);
    let logical = '';
    if (rest[0] === ' ') {
      const found = unquoted(rest.slice(1));
      if (!found) {
        return null;
      }
      [logical, rest] = found;
    }
    entries.push({ name, kind: kind[1], logical });
    if (rest === '>') {
      break;
    }
    if (!rest.startsWith(', ')) {
      return null;
    }
    rest = rest.slice(2);
  }
  const names = new Set(entries.map((entry) => entry.name));
  const isPlain = (/** @type {string} */ name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name);
  const parts = entries.map(
    ({ name, kind, logical }) =>
      `${isPlain(name) ? name : quoted(name)}: ${kind}${logical ? ` ${quoted(logical)}` : ''}`,
  );
  return names.size === entries.length && `${start}${parts.join(', ')}>` === text ? entries : null;
}

/**
 * Bytes of a kind `bytesN`; 0 if it is not one.
 * @param {string} kind
 */
export function fixedBytes(kind) {
  const digits = /^bytes([1-9][0-9]{0,4})$/.exec(kind);
  const bytes = digits ? Number(digits[1]) : 0;
  return bytes <= 65535 ? bytes : 0;
}

/**
 * Reads a record; null if the text is none, or does not fit the type of the values.
 * @param {string} text
 * @param {string} valueType
 * @returns {Record | null}
 */
export function readRecord(text, valueType) {
  const entries = readList(text, 'record<');
  if (!entries || entries.length > 1024) {
    return null;
  }
  let offset = 0;
  /** @type {Field[]} */
  const fields = [];
  for (const entry of entries) {
    const isText = entry.kind === 'bytes' || entry.kind === 'utf8';
    const bytes = isText ? 4 : (NUMBERS.get(entry.kind) ?? fixedBytes(entry.kind));
    if (bytes === 0) {
      return null;
    }
    fields.push({ ...entry, offset, bytes, isText });
    offset += bytes;
  }
  const hasTexts = fields.some((field) => field.isText);
  const storage = hasTexts ? 'bytes' : offset === 4 ? 'u32' : offset === 8 ? 'u64' : `bytes${offset}`;
  return offset <= 65535 && storage === valueType ? { fields, bytes: offset, hasTexts } : null;
}

/**
 * Returns the rule that a value breaks; null if it breaks none.
 * @param {Record} record
 * @param {Uint8Array} value
 */
export function recordFault(record, value) {
  if (value.length < record.bytes || (value.length > record.bytes && !record.hasTexts)) {
    return `fields of ${record.bytes} bytes`;
  }
  if (!record.hasTexts) {
    return null;
  }
  const view = new DataView(value.buffer, value.byteOffset, value.length);
  let last = record.bytes;
  for (const field of record.fields) {
    if (!field.isText) {
      continue;
    }
    const end = record.bytes + view.getUint32(field.offset, true);
    if (end < last) {
      return `ends of texts that ascend, up to field ${field.name}`;
    }
    if (end > value.length) {
      return 'texts that end where the value does';
    }
    if (field.kind === 'utf8' && !isUtf8(value.subarray(last, end))) {
      return `valid UTF-8 in field ${field.name}`;
    }
    last = end;
  }
  return last === value.length ? null : 'texts that end where the value does';
}

/**
 * Returns a number of a field or a part.
 * @param {string} kind
 * @param {DataView} view
 * @param {number} at
 * @returns {number | bigint | null}
 */
function readNumber(kind, view, at) {
  switch (kind) {
    case 'u8':
      return view.getUint8(at);
    case 'u16':
      return view.getUint16(at, true);
    case 'u32':
      return view.getUint32(at, true);
    case 'u64':
      return view.getBigUint64(at, true);
    case 'i8':
      return view.getInt8(at);
    case 'i16':
      return view.getInt16(at, true);
    case 'i32':
      return view.getInt32(at, true);
    case 'i64':
      return view.getBigInt64(at, true);
    case 'f32':
      return view.getFloat32(at, true);
    case 'f64':
      return view.getFloat64(at, true);
    default:
      return null;
  }
}

/**
 * Returns the fields of a value: numbers, byte strings and texts. A field that breaks a rule is zero or empty.
 * @param {Record} record
 * @param {Uint8Array} value
 * @returns {(number | bigint | Uint8Array | string)[]}
 */
export function readFields(record, value) {
  const own = new Uint8Array(Math.max(record.bytes, value.length));
  own.set(value);
  const view = new DataView(own.buffer);
  let last = record.bytes;
  return record.fields.map((field) => {
    if (!field.isText) {
      return readNumber(field.kind, view, field.offset) ?? own.slice(field.offset, field.offset + field.bytes);
    }
    const [start, end] = [last, record.bytes + view.getUint32(field.offset, true)];
    last = end;
    const bytes = end >= start && end <= value.length ? value.slice(start, end) : new Uint8Array(0);
    return field.kind === 'utf8' ? (isUtf8(bytes) ? textOf(bytes) : '') : bytes;
  });
}
