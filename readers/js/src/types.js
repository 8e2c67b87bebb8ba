/**
 * Types of keys and values, and how numbers become words that have their order.
 */

/**
 * @typedef {{name: string, code: number, bytes: number, isBytes: boolean, fixed: number | null}} Type
 * `bytes` is the size of a number or of a byte string of one length, else 0; `fixed` is the latter alone.
 */

const KEYS = new Map([
  [1, ['u32', 4]],
  [2, ['u64', 8]],
  [3, ['i32', 4]],
  [4, ['i64', 8]],
  [5, ['u128', 16]],
  [6, ['f64', 8]],
  [8, ['bytes', 0]],
  [9, ['utf8', 0]],
]);
const VALUES = new Map([
  [0, ['none', 0]],
  [1, ['u32', 4]],
  [2, ['u64', 8]],
  [3, ['i32', 4]],
  [4, ['i64', 8]],
  [5, ['f32', 4]],
  [6, ['f64', 8]],
  [8, ['bytes', 0]],
  [9, ['utf8', 0]],
]);

/**
 * @param {Map<number, (string | number)[]>} types
 * @param {number} code
 * @param {number} bytes
 * @returns {Type | null}
 */
function typeOf(types, code, bytes) {
  if (code === 7) {
    return bytes >= 1 && bytes <= 65535 ? { name: `bytes${bytes}`, code, bytes, isBytes: true, fixed: bytes } : null;
  }
  const found = types.get(code);
  if (!found || found[1] !== bytes) {
    return null;
  }
  return { name: String(found[0]), code, bytes, isBytes: code >= 8, fixed: null };
}

/**
 * @param {number} code
 * @param {number} bytes
 */
export const keyTypeOf = (code, bytes) => typeOf(KEYS, code, bytes);

/**
 * @param {number} code
 * @param {number} bytes
 */
export const valueTypeOf = (code, bytes) => typeOf(VALUES, code, bytes);

/**
 * Bytes of a value in a tuple line.
 * @param {Type} type
 */
export const lineBytes = (type) => (type.isBytes ? 0 : type.bytes);

const FLOAT = new DataView(new ArrayBuffer(8));
const TOP = 1n << 63n;
const ALL = (1n << 64n) - 1n;

/**
 * Returns the bits of a number as a 64-bit float.
 * @param {number} number
 */
export function bitsOf(number) {
  FLOAT.setFloat64(0, number);
  return FLOAT.getBigUint64(0);
}

/** @param {bigint} bits */
export function floatOf(bits) {
  FLOAT.setBigUint64(0, bits);
  return FLOAT.getFloat64(0);
}

/**
 * Returns the unsigned number that stands for a float: the order of these is that of the floats.
 * @param {bigint} bits
 */
export function encodeFloat(bits) {
  if (bits === TOP) {
    return TOP;
  }
  return bits & TOP ? bits ^ ALL : bits | TOP;
}

/** @param {bigint} word */
export const decodeFloat = (word) => (word & TOP ? word ^ TOP : word ^ ALL);

/** The word that -0.0 would have, which no key has. */
export const MINUS_ZERO = TOP - 1n;

/**
 * Reports whether an encoding is that of a key: no NaN, no -0.0.
 * @param {Type} type
 * @param {bigint} word
 */
export function isKeyWord(type, word) {
  if (type.name !== 'f64') {
    return true;
  }
  return word !== MINUS_ZERO && !Number.isNaN(floatOf(decodeFloat(word)));
}

/**
 * Returns the encoding of a numeric key, an unsigned number; null if the type has no such number.
 * @param {Type} type
 * @param {number | bigint} key
 * @returns {bigint | null}
 */
export function encodeNumber(type, key) {
  if (type.name === 'f64') {
    return encodeFloat(bitsOf(Number(key)));
  }
  if (typeof key === 'number' && !Number.isInteger(key)) {
    return null;
  }
  const bits = BigInt(8 * type.bytes);
  const word = type.name.startsWith('i') ? BigInt(key) + (1n << (bits - 1n)) : BigInt(key);
  return word >= 0n && word >> bits === 0n ? word : null;
}

/**
 * Returns the key of an encoding: a number for types of 32 bits and floats, else a BigInt.
 * @param {Type} type
 * @param {bigint} word
 * @returns {number | bigint}
 */
export function decodeNumber(type, word) {
  switch (type.name) {
    case 'u32':
      return Number(word);
    case 'i32':
      return Number(word) - 0x80000000;
    case 'i64':
      return word - TOP;
    case 'f64':
      return floatOf(decodeFloat(word));
    default:
      return word;
  }
}

/**
 * Returns the value of a numeric type at a place in memory.
 * @param {Type} type
 * @param {DataView} view
 * @param {number} at
 */
export function readValue(type, view, at) {
  switch (type.name) {
    case 'u32':
      return view.getUint32(at, true);
    case 'i32':
      return view.getInt32(at, true);
    case 'f32':
      return view.getFloat32(at, true);
    case 'u64':
      return view.getBigUint64(at, true);
    case 'i64':
      return view.getBigInt64(at, true);
    default:
      return view.getFloat64(at, true);
  }
}

/**
 * Prints a float in the fewest digits that read back as it.
 * @param {number} number
 * @param {boolean} isSingle true for one of 32 bits
 */
export function floatText(number, isSingle) {
  if (!Number.isFinite(number)) {
    return Number.isNaN(number) ? 'NaN' : number < 0 ? '-inf' : 'inf';
  }
  let plain = number;
  for (let digits = 1; isSingle && digits <= 9; digits++) {
    plain = Number(number.toPrecision(digits));
    if (Math.fround(plain) === number) {
      break;
    }
  }
  const size = Math.abs(plain);
  if (size !== 0 && (size >= 1e16 || size < 1e-5)) {
    return plain.toExponential().replace('e+', 'e');
  }
  const text = Object.is(plain, -0) ? '-0' : String(plain);
  return Number.isInteger(plain) ? `${text}.0` : text.includes('e') ? plain.toFixed(20).replace(/0+$/, '') : text;
}
