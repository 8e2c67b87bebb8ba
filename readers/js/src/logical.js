/**
 * Logical types: what keys and values mean. Their texts are read into keys and printed from them.
 *
 * An *element* is a BigInt (a signed or an unsigned number) or a Uint8Array.
 */
import { hash128 } from './sip.js';
import { isUtf8, textOf } from './meta.js';
import { fixedBytes, readList } from './record.js';

const UNITS = new Map([
  ['Second', 0],
  ['Millisecond', 3],
  ['Microsecond', 6],
  ['Nanosecond', 9],
]);
const UNIT_NAMES = new Map([
  [0, 's'],
  [3, 'ms'],
  [6, 'us'],
  [9, 'ns'],
]);

/**
 * @typedef {object} Logical
 * @property {string} kind plain, date, date64, time, timestamp, duration, decimal, boolean, uuid, ipv4, ipv6, ip, dna,
 *   hex, digits, hash, prefix, composite, record or unknown
 * @property {string} words the key type that it needs; empty if any
 * @property {string} name what people call it
 * @property {number} [digits] digits of a second, or of a text
 * @property {boolean} [isZoned]
 * @property {number} [scale]
 * @property {number} [precision]
 * @property {boolean} [isCanonical]
 * @property {number} [turn]
 * @property {number} [letters]
 * @property {Part[]} [parts]
 *
 * @typedef {{name: string, kind: string, bytes: number, isSigned: boolean, isText: boolean, logical: Logical}} Part
 * A part of a composite key; `bytes` is 0 if they vary, `isText` says that it is not a number.
 */

/** @type {Logical} */
const PLAIN = { kind: 'plain', words: '', name: '' };

/** @param {string} text @returns {Logical} */
const unknown = (text) => ({ kind: 'unknown', words: '', name: text });

/**
 * The key type of so many hexadecimal digits.
 * @param {number} count
 */
const digitWords = (count) => (count <= 8 ? 'u32' : count <= 16 ? 'u64' : count <= 32 ? 'u128' : `bytes${count / 2}`);

/** @type {Map<string, Logical>} */
const SIMPLE = new Map([
  ['Date32', { kind: 'date', words: 'i32', name: 'date' }],
  ['Date64', { kind: 'date64', words: 'i64', name: 'date[ms]', digits: 3, isZoned: false }],
  ['Boolean', { kind: 'boolean', words: 'u32', name: 'bool' }],
  ['Uuid', { kind: 'uuid', words: 'u128', name: 'uuid' }],
  ['Ipv4', { kind: 'ipv4', words: 'u32', name: 'ipv4' }],
  ['Ipv6', { kind: 'ipv6', words: 'u128', name: 'ipv6' }],
  ['Ip', { kind: 'ip', words: 'u128', name: 'ip' }],
  ['Dna2', { kind: 'dna', words: 'u128', name: 'dna2', isCanonical: false }],
  ['Dna2(Canonical)', { kind: 'dna', words: 'u128', name: 'dna2:canonical', isCanonical: true }],
  ['Hex', { kind: 'hex', words: 'bytes', name: 'hex' }],
  ['Hash64', { kind: 'hash', words: 'u64', name: 'hash64', turn: 0 }],
]);

/**
 * Reads the text of a logical type, as META has it.
 * @param {string} text
 * @returns {Logical}
 */
export function readLogical(text) {
  if (text === '') {
    return PLAIN;
  }
  const simple = SIMPLE.get(text);
  if (simple) {
    return simple;
  }
  if (text.startsWith('record<')) {
    return { kind: 'record', words: '', name: text };
  }
  if (text.startsWith('composite<')) {
    return readComposite(text) ?? unknown(text);
  }
  return readNumbered(text) ?? unknown(text);
}

/**
 * Reads a type that has arguments.
 * @param {string} text
 * @returns {Logical | null}
 */
function readNumbered(text) {
  const [, name, inner] = /^([A-Za-z0-9]+)\((.*)\)$/s.exec(text) ?? [];
  const isNumber = /^[1-9][0-9]*$/.test(inner ?? '');
  const number = isNumber ? Number(inner) : 0;
  const digits = UNITS.get(inner ?? '');
  switch (name) {
    case 'Hex':
      if (number < 1 || number > 131070 || (number > 32 && number % 2 === 1)) {
        return null;
      }
      return { kind: 'digits', words: digitWords(number), name: `hex:${number}`, digits: number };
    case 'Hash64':
      return number >= 1 && number <= 15 ? { kind: 'hash', words: 'u64', name: 'hash64', turn: number } : null;
    case 'Prefix':
      return number >= 1 && number < 2 ** 32
        ? { kind: 'prefix', words: 'utf8', name: `prefix:${number}`, letters: number }
        : null;
    case 'Time32':
    case 'Time64': {
      // Each has two of the units.
      const isCoarse = digits !== undefined && digits < 6;
      return digits === undefined || isCoarse !== (name === 'Time32')
        ? null
        : { kind: 'time', words: isCoarse ? 'i32' : 'i64', name: `time[${UNIT_NAMES.get(digits)}]`, digits };
    }
    case 'Duration':
      return digits === undefined
        ? null
        : { kind: 'duration', words: 'i64', name: `duration[${UNIT_NAMES.get(digits)}]`, digits };
    case 'Timestamp':
      return readTimestamp(inner);
    case 'Decimal32':
    case 'Decimal64':
    case 'Decimal128':
      return readDecimal(name, inner);
    default:
      return null;
  }
}

/** @param {string} inner @returns {Logical | null} */
function readTimestamp(inner) {
  const [, unit, zone] = /^([A-Za-z]+), (None|Some\("(?:[^"\\]|\\["\\])*"\))$/s.exec(inner) ?? [];
  const digits = UNITS.get(unit ?? '');
  if (digits === undefined) {
    return null;
  }
  const isZoned = zone !== 'None';
  const place = isZoned ? `,${zone.slice(6, -2).replace(/\\(.)/gs, '$1')}` : '';
  return { kind: 'timestamp', words: 'i64', name: `timestamp[${UNIT_NAMES.get(digits)}${place}]`, digits, isZoned };
}

/** @param {string} name @param {string} inner @returns {Logical | null} */
function readDecimal(name, inner) {
  const found = /^(0|[1-9][0-9]{0,2}), (0|-?[1-9][0-9]{0,2})$/.exec(inner);
  if (!found) {
    return null;
  }
  const [precision, scale] = [Number(found[1]), Number(found[2])];
  if (precision > 255 || scale < -128 || scale > 127) {
    return null;
  }
  const bits = name === 'Decimal128' ? '' : name.slice(7);
  return { kind: 'decimal', words: 'i64', name: `decimal${bits}(${precision},${scale})`, precision, scale };
}

const PART_BYTES = new Map([
  ['u8', 1],
  ['u16', 2],
  ['u32', 4],
  ['u64', 8],
  ['u128', 16],
  ['i8', 1],
  ['i16', 2],
  ['i32', 4],
  ['i64', 8],
]);

/** @param {string} text @returns {Logical | null} */
function readComposite(text) {
  const entries = readList(text, 'composite<');
  if (!entries || entries.length < 2 || entries.length > 8) {
    return null;
  }
  /** @type {Part[]} */
  const parts = [];
  for (const { name, kind, logical } of entries) {
    const meaning = readLogical(logical);
    const isAllowed = !['boolean', 'hash', 'prefix', 'composite', 'record', 'unknown'].includes(meaning.kind);
    const fits = meaning.words === '' || meaning.words === kind || (meaning.words === 'u128' && kind === 'bytes16');
    const bytes = PART_BYTES.get(kind) ?? fixedBytes(kind);
    if (!isAllowed || !fits || (bytes === 0 && kind !== 'bytes' && kind !== 'utf8')) {
      return null;
    }
    const isNumber = PART_BYTES.has(kind) || (meaning.words === 'u128' && kind === 'bytes16');
    parts.push({ name, kind, bytes, isSigned: kind.startsWith('i'), isText: !isNumber, logical: meaning });
  }
  const isFixed = parts.every((part) => part.bytes > 0);
  const all = parts.reduce((sum, part) => sum + part.bytes, 0);
  const words = !isFixed
    ? 'bytes'
    : all <= 4
      ? 'u32'
      : all <= 8
        ? 'u64'
        : all <= 16
          ? 'u128'
          : all <= 65535
            ? `bytes${all}`
            : 'bytes';
  const names = parts.map((part) => part.logical.name || part.kind);
  return { kind: 'composite', words, name: `(${names.join(', ')})`, parts };
}

/**
 * Returns the logical type of a column of this type; one that does not fit it is unknown.
 * @param {string} text
 * @param {string} words name of the type
 */
export function meaningOf(text, words) {
  const logical = readLogical(text);
  const { kind } = logical;
  if (logical.words === '' || logical.words === words) {
    return logical;
  }
  if ((logical.words === 'u128' && words === 'bytes16') || (kind === 'boolean' && words === 'u8')) {
    return logical;
  }
  return unknown(text);
}

// Texts of signed numbers: dates, times and decimals.

const DAY = 86400n;

/** @param {bigint} a @param {bigint} b */
const floorDiv = (a, b) => (a >= 0n ? a / b : -((-a + b - 1n) / b));

/** @param {bigint} days since 1970-01-01 */
function dateText(days) {
  const from = days + 719468n;
  const era = floorDiv(from, 146097n);
  const of = from - era * 146097n;
  const year = (of - of / 1460n + of / 36524n - of / 146096n) / 365n;
  const ofYear = of - (365n * year + year / 4n - year / 100n);
  const month = (5n * ofYear + 2n) / 153n;
  const day = ofYear - (153n * month + 2n) / 5n + 1n;
  const number = month < 10n ? month + 3n : month - 9n;
  const whole = era * 400n + year + (number <= 2n ? 1n : 0n);
  const sign = whole < 0n ? '-' : whole > 9999n ? '+' : '';
  return `${sign}${padded(whole < 0n ? -whole : whole, 4)}-${padded(number, 2)}-${padded(day, 2)}`;
}

/** @param {bigint} number @param {number} width */
const padded = (number, width) => number.toString().padStart(width, '0');

/** @param {bigint} ticks below a second @param {number} digits */
const fractionText = (ticks, digits) => (ticks === 0n ? '' : `.${padded(ticks, digits).replace(/0+$/, '')}`);

/** @param {bigint} ticks @param {number} digits */
function clockText(ticks, digits) {
  const per = 10n ** BigInt(digits);
  const seconds = ticks / per;
  const clock = [seconds / 3600n, (seconds / 60n) % 60n, seconds % 60n].map((part) => padded(part, 2)).join(':');
  return clock + fractionText(ticks % per, digits);
}

/** @param {bigint} word @param {number} scale */
function decimalText(word, scale) {
  const sign = word < 0n ? '-' : '';
  const number = word < 0n ? -word : word;
  if (scale <= 0) {
    return `${sign}${number}${number === 0n ? '' : '0'.repeat(-scale)}`;
  }
  const power = 10n ** BigInt(scale);
  return `${sign}${number / power}.${padded(number % power, scale)}`;
}

/**
 * Prints a signed number of a logical type.
 * @param {Logical} logical
 * @param {bigint} word
 */
function signedText(logical, word) {
  const digits = logical.digits ?? 0;
  const per = 10n ** BigInt(digits);
  switch (logical.kind) {
    case 'date':
      return dateText(word);
    case 'date64':
    case 'timestamp': {
      const days = floorDiv(word, DAY * per);
      const ticks = word - days * DAY * per;
      if (logical.kind === 'date64' && ticks === 0n) {
        return dateText(days);
      }
      return `${dateText(days)}T${clockText(ticks, digits)}${logical.isZoned ? 'Z' : ''}`;
    }
    case 'time': {
      const isInDay = word >= 0n && word < DAY * per;
      const sign = isInDay ? '' : word < 0n ? '-' : '+';
      return sign + clockText(word < 0n ? -word : word, digits);
    }
    case 'duration': {
      const number = word < 0n ? -word : word;
      return `${word < 0n ? '-' : ''}${number / per}${fractionText(number % per, digits)}s`;
    }
    case 'decimal':
      return decimalText(word, logical.scale ?? 0);
    default:
      return word.toString();
  }
}

/**
 * Reads a number with a point, times a power of ten. Null if it has another form or is finer than that.
 * @param {string} text
 * @param {number} exponent
 * @returns {bigint | null}
 */
function scaled(text, exponent) {
  const found = /^([0-9]+)(?:\.([0-9]+))?$/.exec(text);
  if (!found) {
    return null;
  }
  const fraction = found[2] ?? '';
  const number = BigInt(found[1] + fraction);
  const left = exponent - fraction.length;
  if (left >= 0) {
    return left > 400 && number !== 0n ? null : number * 10n ** BigInt(Math.min(left, 400));
  }
  const power = 10n ** BigInt(-left);
  return number % power === 0n ? number / power : null;
}

/** @param {string} text @returns {{days: bigint, rest: string} | null} */
function readDate(text) {
  const found = /^([+-]?)([0-9]{4,15})-([0-9]{2})-([0-9]{2})/.exec(text);
  if (!found || (found[2].length > 4 && found[1] === '')) {
    return null;
  }
  const year = BigInt(found[2]) * (found[1] === '-' ? -1n : 1n);
  const [month, day] = [Number(found[3]), Number(found[4])];
  const isLeap = year % 4n === 0n && (year % 100n !== 0n || year % 400n === 0n);
  const days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0;
  if (day < 1 || day > days) {
    return null;
  }
  const of = month <= 2 ? year - 1n : year;
  const era = floorDiv(of, 400n);
  const ofEra = of - era * 400n;
  const ofYear = BigInt(Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1);
  const number = era * 146097n + ofEra * 365n + ofEra / 4n - ofEra / 100n + ofYear - 719468n;
  return { days: number, rest: text.slice(found[0].length) };
}

/** Reads `hh:mm:ss.fff`. @param {string} text @param {number} digits @param {boolean} isAny */
function readClock(text, digits, isAny) {
  const found = /^([0-9]{2,20}):([0-9]{2})(?::([0-9]{2}))?(?:\.([0-9]+))?/.exec(text);
  if (!found || (found[4] !== undefined && found[3] === undefined)) {
    return null;
  }
  const [hours, minutes, seconds] = [BigInt(found[1]), BigInt(found[2]), BigInt(found[3] ?? 0)];
  if ((!isAny && (found[1].length !== 2 || hours > 23n)) || minutes > 59n || seconds > 59n) {
    return null;
  }
  const fraction = scaled(`0.${found[4] ?? '0'}`, digits);
  if (fraction === null) {
    return null;
  }
  const ticks = (hours * 3600n + minutes * 60n + seconds) * 10n ** BigInt(digits) + fraction;
  return { ticks, rest: text.slice(found[0].length) };
}

/**
 * Reads seconds behind UTC; undefined if there is no zone, null if it has another form.
 * @param {string} text
 */
function readZone(text) {
  if (text === '') {
    return undefined;
  }
  if (text === 'Z' || text === 'z') {
    return 0n;
  }
  const found = /^([+-])([0-9]{2})(?::?([0-9]{2}))?$/.exec(text);
  if (!found || Number(found[2]) > 23 || Number(found[3] ?? 0) > 59) {
    return null;
  }
  const seconds = BigInt(found[2]) * 3600n + BigInt(found[3] ?? 0) * 60n;
  return found[1] === '-' ? -seconds : seconds;
}

/** @param {Logical} logical @param {string} text @returns {bigint | null} */
function readMoment(logical, text) {
  const digits = logical.digits ?? 0;
  const per = 10n ** BigInt(digits);
  const date = readDate(text);
  if (!date) {
    return null;
  }
  if (date.rest === '') {
    return date.days * DAY * per;
  }
  if (!/^[Tt ]/.test(date.rest)) {
    return null;
  }
  const clock = readClock(date.rest.slice(1), digits, false);
  const zone = clock ? readZone(clock.rest) : null;
  if (!clock || zone === null || (zone !== undefined) !== (logical.isZoned ?? false)) {
    return null;
  }
  return date.days * DAY * per + clock.ticks - (zone ?? 0n) * per;
}

/**
 * Reads the text of a signed number of a logical type.
 * @param {Logical} logical
 * @param {string} text
 * @returns {bigint | null}
 */
function readSigned(logical, text) {
  const [, sign, rest] = /^([+-]?)(.*)$/s.exec(text) ?? ['', '', ''];
  const turned = (/** @type {bigint | null} */ word) => (word !== null && sign === '-' ? -word : word);
  switch (logical.kind) {
    case 'date': {
      const date = readDate(text);
      return date && date.rest === '' ? date.days : null;
    }
    case 'date64':
    case 'timestamp':
      return readMoment(logical, text);
    case 'time': {
      const clock = readClock(rest, logical.digits ?? 0, sign !== '');
      return clock && clock.rest === '' ? turned(clock.ticks) : null;
    }
    case 'duration': {
      const found = /^(.*?)(ms|us|ns|s)$/s.exec(rest);
      const unit = { s: 0, ms: 3, us: 6, ns: 9 }[found?.[2] ?? 's'] ?? 0;
      return found ? turned(scaled(found[1], (logical.digits ?? 0) - unit)) : null;
    }
    default:
      return turned(scaled(rest, logical.scale ?? 0));
  }
}

// Texts of unsigned numbers: addresses, uuids, bases and digits.

/** @param {string} text @returns {bigint | null} */
function readV4(text) {
  const parts = text.split('.');
  const isGood = parts.length === 4 && parts.every((part) => /^(0|[1-9][0-9]{0,2})$/.test(part) && Number(part) < 256);
  return isGood ? parts.reduce((all, part) => (all << 8n) | BigInt(part), 0n) : null;
}

/** @param {bigint} address */
const v4Text = (address) => [24n, 16n, 8n, 0n].map((at) => (address >> at) & 255n).join('.');

/** @param {string} text @returns {bigint | null} */
function readV6(text) {
  let plain = text;
  const tail = /^(.*:)([0-9.]+\.[0-9.]+)$/.exec(text);
  if (tail) {
    const low = readV4(tail[2]);
    if (low === null) {
      return null;
    }
    plain = `${tail[1]}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`;
  }
  const halves = plain.split('::');
  if (halves.length > 2) {
    return null;
  }
  const groups = halves.map((half) => (half === '' ? [] : half.split(':')));
  const count = groups.flat().length;
  const isGood = groups.flat().every((group) => /^[0-9a-fA-F]{1,4}$/.test(group));
  if (!isGood || (halves.length === 2 ? count > 7 : count !== 8)) {
    return null;
  }
  const all = halves.length === 2 ? [...groups[0], ...Array(8 - count).fill('0'), ...groups[1]] : groups[0];
  return all.reduce((address, group) => (address << 16n) | BigInt(`0x${group}`), 0n);
}

/** @param {bigint} address */
function v6Text(address) {
  if (address >> 32n === 0xffffn) {
    return `::ffff:${v4Text(address & 0xffffffffn)}`;
  }
  const groups = Array.from({ length: 8 }, (_, at) => Number((address >> BigInt(112 - 16 * at)) & 0xffffn));
  let [best, bestLength] = [-1, 1];
  for (let at = 0; at < 8; at++) {
    let end = at;
    while (end < 8 && groups[end] === 0) {
      end += 1;
    }
    if (end - at > bestLength) {
      [best, bestLength] = [at, end - at];
    }
  }
  const texts = groups.map((group) => group.toString(16));
  if (best < 0) {
    return texts.join(':');
  }
  return `${texts.slice(0, best).join(':')}::${texts.slice(best + bestLength).join(':')}`;
}

const V4 = 1n << 32n;
const MAPPED = 0xffffn << 32n;

/** The number of an address of both families. @param {bigint} address of IPv6 */
const bothOfV6 = (address) => (address >= MAPPED + V4 ? address : address >= MAPPED ? address - MAPPED : address + V4);

/** @param {bigint} number */
function ipText(number) {
  if (number < V4) {
    return v4Text(number);
  }
  return v6Text(number >= MAPPED + V4 ? number : number - V4);
}

/** @param {string} text @returns {bigint | null} */
function readBases(text) {
  if (!/^[ACGTacgt]{1,61}$/.test(text)) {
    return null;
  }
  let word = BigInt(text.length);
  [...text.toUpperCase()].forEach((base, at) => {
    word |= BigInt('ACGT'.indexOf(base)) << BigInt(126 - 2 * at);
  });
  return word;
}

/** @param {bigint} word */
function basesText(word) {
  const length = Math.min(Number(word & 63n), 61);
  return Array.from({ length }, (_, at) => 'ACGT'[Number((word >> BigInt(126 - 2 * at)) & 3n)]).join('');
}

/** @param {string} text */
function canonical(text) {
  const other = [...text.toUpperCase()]
    .reverse()
    .map((base) => 'ACGT'[3 - 'ACGT'.indexOf(base)])
    .join('');
  return other < text.toUpperCase() ? other : text;
}

/** @param {string} text @returns {Uint8Array | null} */
export function readHex(text) {
  if (!/^([0-9a-fA-F]{2})*$/.test(text)) {
    return null;
  }
  return Uint8Array.from({ length: text.length / 2 }, (_, at) => parseInt(text.slice(2 * at, 2 * at + 2), 16));
}

/** @param {Uint8Array} bytes */
export const hexText = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/** @param {Uint8Array} bytes most significant first */
export const numberOfBytes = (bytes) => bytes.reduce((number, byte) => (number << 8n) | BigInt(byte), 0n);

/** @param {bigint} number @param {number} length */
export function bytesOfNumber(number, length) {
  return Uint8Array.from({ length }, (_, at) => Number((number >> BigInt(8 * (length - 1 - at))) & 255n));
}

const ENCODER = new TextEncoder();

/**
 * Reads the text of a logical type. Returns a BigInt or bytes, or null if the text has another form.
 * @param {Logical} logical
 * @param {string} text
 * @returns {bigint | Uint8Array | null}
 */
export function readElement(logical, text) {
  switch (logical.kind) {
    case 'boolean':
      return /^(1|true)$/i.test(text) ? 1n : /^(0|false)$/i.test(text) ? 0n : null;
    case 'uuid': {
      const isUuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text);
      return isUuid || /^[0-9a-f]{32}$/i.test(text) ? BigInt(`0x${text.replaceAll('-', '')}`) : null;
    }
    case 'ipv4':
      return readV4(text);
    case 'ipv6':
      return readV6(text);
    case 'ip': {
      const six = readV6(text);
      return readV4(text) ?? (six === null ? null : bothOfV6(six));
    }
    case 'dna':
      return readBases(logical.isCanonical && readBases(text) !== null ? canonical(text) : text);
    case 'hex':
      return readHex(text);
    case 'digits': {
      const count = logical.digits ?? 0;
      if (!/^[0-9a-fA-F]*$/.test(text) || text.length < count) {
        return null;
      }
      const first = text.slice(0, count);
      return count > 32 ? readHex(first) : BigInt(`0x${first}`);
    }
    case 'hash': {
      const hash = hash128(ENCODER.encode(text));
      const turn = BigInt(8 * (logical.turn ?? 0));
      return (((hash << turn) | (hash >> (128n - turn))) >> 64n) & ((1n << 64n) - 1n);
    }
    case 'prefix':
      return ENCODER.encode([...text].slice(0, logical.letters).join(''));
    case 'composite':
      return readParts(logical, text);
    case 'plain':
    case 'record':
    case 'unknown':
      return null;
    default:
      return readSigned(logical, text);
  }
}

/**
 * Prints an unsigned number of a logical type.
 * @param {Logical} logical
 * @param {bigint} number
 */
function unsignedText(logical, number) {
  switch (logical.kind) {
    case 'boolean':
      return number === 0n ? 'false' : 'true';
    case 'uuid': {
      const digits = number.toString(16).padStart(32, '0');
      return [
        [0, 8],
        [8, 12],
        [12, 16],
        [16, 20],
        [20, 32],
      ]
        .map(([from, to]) => digits.slice(from, to))
        .join('-');
    }
    case 'ipv4':
      return v4Text(number);
    case 'ipv6':
      return v6Text(number);
    case 'ip':
      return ipText(number);
    case 'dna':
      return basesText(number);
    case 'digits':
      return number.toString(16).padStart(logical.digits ?? 0, '0');
    case 'hash':
      return number.toString(16).padStart(16, '0');
    default:
      return number.toString();
  }
}

const SIGNED = ['date', 'date64', 'time', 'timestamp', 'duration', 'decimal'];
const WIDE = ['uuid', 'ipv6', 'ip', 'dna'];

/**
 * Prints an element of a logical type.
 * @param {Logical} logical
 * @param {bigint | Uint8Array} element
 * @returns {string}
 */
export function elementText(logical, element) {
  if (logical.kind === 'composite') {
    return partsText(logical, element);
  }
  if (typeof element === 'bigint') {
    return SIGNED.includes(logical.kind) ? signedText(logical, element) : unsignedText(logical, element);
  }
  if (logical.kind === 'prefix') {
    return textOf(element);
  }
  const isWide = WIDE.includes(logical.kind) || (logical.kind === 'digits' && (logical.digits ?? 0) > 16);
  return isWide && element.length === 16 ? unsignedText(logical, numberOfBytes(element)) : hexText(element);
}

// Composite keys.

/**
 * Splits a text at commas; a part in quotes may have some. Null if a quote has no end.
 * @param {string} text
 * @returns {string[] | null}
 */
function splitFields(text) {
  const fields = [];
  let rest = text;
  for (;;) {
    if (rest[0] === '"') {
      const found = /^"((?:[^"]|"")*)"(,|$)/s.exec(rest);
      if (!found) {
        return null;
      }
      fields.push(found[1].replaceAll('""', '"'));
      if (found[2] === '') {
        return fields;
      }
      rest = rest.slice(found[0].length);
      continue;
    }
    const comma = rest.indexOf(',');
    fields.push(comma < 0 ? rest : rest.slice(0, comma));
    if (comma < 0) {
      return fields;
    }
    rest = rest.slice(comma + 1);
  }
}

/**
 * @param {Part} part
 * @param {string} text
 * @returns {bigint | Uint8Array | null}
 */
function readPart(part, text) {
  const plain = part.kind === 'utf8' ? text : text.trim();
  if (part.logical.kind !== 'plain') {
    return readElement(part.logical, plain);
  }
  if (part.kind === 'utf8') {
    return ENCODER.encode(text);
  }
  if (part.isText) {
    return readHex(plain.startsWith('\\x') ? plain.slice(2) : plain);
  }
  const isNumber = part.isSigned ? /^[+-]?[0-9]+$/.test(plain) : /^[0-9]+$/.test(plain);
  return isNumber ? BigInt(plain) : null;
}

/**
 * Returns the bytes of a part; null if its element does not fit.
 * @param {Part} part
 * @param {bigint | Uint8Array} element
 * @param {boolean} isLast
 * @returns {number[] | null}
 */
function partBytes(part, element, isLast) {
  if (typeof element === 'bigint') {
    const bits = BigInt(8 * part.bytes);
    const word = part.isSigned ? element + (1n << (bits - 1n)) : element;
    if (word < 0n || word >> bits !== 0n) {
      return null;
    }
    const { kind, precision } = part.logical;
    if (kind === 'decimal' && (element < 0n ? -element : element) >= 10n ** BigInt(precision ?? 0)) {
      return null;
    }
    return [...bytesOfNumber(word, part.bytes)];
  }
  if (part.bytes > 0) {
    return element.length === part.bytes ? [...element] : null;
  }
  return isLast ? [...element] : [...[...element].flatMap((byte) => (byte === 0 ? [0, 255] : [byte])), 0, 0];
}

/**
 * @param {Logical} logical
 * @param {string} text
 * @returns {bigint | Uint8Array | null}
 */
function readParts(logical, text) {
  const parts = logical.parts ?? [];
  const fields = splitFields(text);
  if (!fields || fields.length !== parts.length) {
    return null;
  }
  const key = [];
  for (const [at, part] of parts.entries()) {
    const element = readPart(part, fields[at]);
    const bytes = element === null ? null : partBytes(part, element, at + 1 === parts.length);
    if (!bytes) {
      return null;
    }
    key.push(...bytes);
  }
  if (key.length > 65535) {
    return null;
  }
  const bytes = Uint8Array.from(key);
  return logical.words.startsWith('u') && logical.words !== 'utf8' ? numberOfBytes(bytes) : bytes;
}

/**
 * Splits a key into the elements of its parts; null if it is not made of them.
 * @param {Logical} logical
 * @param {Uint8Array} key
 * @returns {(bigint | Uint8Array)[] | null}
 */
export function splitParts(logical, key) {
  const parts = logical.parts ?? [];
  const elements = [];
  let at = 0;
  for (const [number, part] of parts.entries()) {
    if (part.bytes > 0) {
      const own = key.subarray(at, at + part.bytes);
      if (own.length < part.bytes) {
        return null;
      }
      at += part.bytes;
      const word = part.isText ? own : numberOfBytes(own);
      elements.push(typeof word === 'bigint' && part.isSigned ? word - (1n << BigInt(8 * part.bytes - 1)) : word);
    } else if (number + 1 === parts.length) {
      elements.push(key.subarray(at));
      at = key.length;
    } else {
      const own = [];
      for (;;) {
        if (at + 1 >= key.length && key[at] !== 0) {
          return null;
        }
        if (key[at] !== 0) {
          own.push(key[at++]);
          continue;
        }
        const next = key[at + 1];
        at += 2;
        if (next === 0) {
          break;
        }
        if (next !== 255) {
          return null;
        }
        own.push(0);
      }
      elements.push(Uint8Array.from(own));
    }
  }
  return at === key.length ? elements : null;
}

/** @param {Logical} logical @param {bigint | Uint8Array} key */
function partsText(logical, key) {
  const parts = logical.parts ?? [];
  const all = parts.reduce((sum, part) => sum + part.bytes, 0);
  const isOver = typeof key === 'bigint' && key >> BigInt(8 * all) !== 0n;
  const bytes = typeof key === 'bigint' ? bytesOfNumber(key, isOver ? 16 : all) : key;
  const elements = isOver ? null : splitParts(logical, bytes);
  if (!elements) {
    return hexText(bytes);
  }
  return elements
    .map((element, at) => {
      const part = parts[at];
      if (part.logical.kind !== 'plain') {
        return elementText(part.logical, element);
      }
      if (typeof element === 'bigint') {
        return element.toString();
      }
      if (part.kind !== 'utf8') {
        return hexText(element);
      }
      const text = textOf(element);
      // eslint-disable-next-line no-control-regex
      return /[,"\x00-\x1f\x7f]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    })
    .join(',');
}

/**
 * Returns how many different keys a file says that it has, if its keys are shorter than those they stand for.
 * @param {Logical} logical
 * @param {string} text tag 7 of META
 * @param {number} tuples
 */
export function approximateOf(logical, text, tuples) {
  if (!/^[0-9]+$/.test(text) || BigInt(text) >> 64n !== 0n) {
    return null;
  }
  if (logical.kind !== 'hash' && logical.kind !== 'digits' && logical.kind !== 'prefix') {
    return null;
  }
  return { distinct: Math.min(Number(text), tuples) };
}

/** Reports whether keys of this type always stand for longer ones. @param {Logical} logical */
export const isAlwaysApproximate = (logical) => logical.kind === 'hash' || logical.kind === 'prefix';

export { isUtf8 };
