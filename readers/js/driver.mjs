/**
 * The conformance protocol on node: one request a line on standard input, one answer a line on standard output.
 */
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { FileSource } from './node.js';
import { check, checkPart } from './src/check.js';
import { Damage, Refusal } from './src/error.js';
import { bytesOfNumber, hexText, readElement, readHex } from './src/logical.js';
import { textOf } from './src/meta.js';
import { Pleach } from './src/pleach.js';
import { sourceOf } from './src/source.js';

/** The file that was opened last, and where its bytes are. */
let file = null;
let source = null;
let path = null;
let damage = null;

/** Bytes of a part of a check that is divided. */
const PART_BYTES = 16384;

/** Room for the bits of a float. */
const FLOAT = new DataView(new ArrayBuffer(8));

function numberWord(type, number) {
  if (type === 'f64') {
    FLOAT.setFloat64(0, number);
    return `f${hexText(new Uint8Array(FLOAT.buffer))}`;
  }
  if (type === 'f32') {
    FLOAT.setFloat32(0, number);
    return `f${hexText(new Uint8Array(FLOAT.buffer, 0, 4))}`;
  }
  return String(number);
}

const bytesWord = (bytes) => `x${hexText(bytes)}`;

async function keyWord(rank) {
  const { keyType } = file.header;
  return keyType.isBytes ? bytesWord(await file.byteKey(rank)) : numberWord(keyType.name, await file.keyAt(rank));
}

/** Values are shown bit by bit, so that every NaN keeps its own. */
async function valueWord(rank) {
  const { valueType, lineTuples, valuesAt, valueBytes } = file.header;
  if (valueType.name === 'none') {
    return '-';
  }
  if (valueType.isBytes) {
    return bytesWord(await file.valueBytesAt(rank));
  }
  if (valueType.name.startsWith('f')) {
    const line = await file.search.line(Math.floor(rank / lineTuples));
    const at = valuesAt + (rank % lineTuples) * valueBytes;
    const bytes = new Uint8Array(line.buffer, line.byteOffset + at, valueBytes).slice().reverse();
    return `f${hexText(bytes)}`;
  }
  return numberWord(valueType.name, await file.valueAt(rank));
}

/** Reads a key of the protocol. Floats stay bits, so that no NaN or zero changes on the way. */
function readKey(word) {
  const { keyType } = file.header;
  if (keyType.isBytes) {
    const bytes = readHex(word.slice(1));
    if (word[0] !== 'x' || !bytes) {
      throw new Error(`not a byte string: ${word}`);
    }
    return bytes;
  }
  if (keyType.name === 'f64') {
    FLOAT.setBigUint64(0, BigInt(`0x${word.slice(1)}`));
    return FLOAT.getFloat64(0);
  }
  return BigInt(word);
}

/** Numbers outside of the type are keys of no file; they belong before or behind all. */
function outside(key) {
  const { keyType } = file.header;
  if (typeof key !== 'bigint') {
    return 0;
  }
  const bits = BigInt(8 * keyType.bytes);
  const low = keyType.name.startsWith('i') ? -(1n << (bits - 1n)) : 0n;
  return key < low ? -1 : key >= low + (1n << bits) ? 1 : 0;
}

async function lower(key, by) {
  const side = outside(key);
  return side === 0 ? file.lower(key, { by }) : side < 0 ? 0 : file.tuples;
}

async function upper(key) {
  const side = outside(key);
  return side === 0 ? file.upper(key) : side < 0 ? 0 : file.tuples;
}

const ANSWERS = {
  async open(name) {
    path = name;
    file = null;
    damage = null;
    await source?.close();
    source = null;
    const opened = await FileSource.open(path);
    source = opened;
    try {
      file = await Pleach.open(opened);
    } catch (error) {
      if (error instanceof Refusal) {
        return `refuse ${error.rule}`;
      }
      if (!(error instanceof Damage)) {
        throw error;
      }
      // The head is right, but META or MASK is damaged: every question meets that.
      damage = error;
    }
    return 'ok';
  },
  tuples: async () => `tuples ${file.tuples}`,
  types: async () => `types ${file.keyType} ${file.valueType}`,
  async at(rank) {
    const number = Number(rank);
    return number < file.tuples ? `tuple ${await keyWord(number)} ${await valueWord(number)}` : 'none';
  },
  async get(word) {
    const key = readKey(word);
    const found = outside(key) === 0 ? await file.get(key) : null;
    return found ? `tuple ${found.rank} ${await valueWord(found.rank)}` : 'absent';
  },
  lower: async (word) => `rank ${await lower(readKey(word))}`,
  upper: async (word) => `rank ${await upper(readKey(word))}`,
  async floor(word) {
    const key = readKey(word);
    const found = outside(key) === 0 ? await file.floor(key) : await file.at((await upper(key)) - 1);
    return found ? `tuple ${found.rank} ${await keyWord(found.rank)} ${await valueWord(found.rank)}` : 'none';
  },
  async range(words) {
    const [first, second] = words.split(' ').map(readKey);
    const isInside = outside(first) === 0 && outside(second) === 0;
    const found = isInside ? file.range(first, second) : file.ranks(await lower(first), await lower(second));
    const tuples = [];
    for await (const { rank } of found) {
      tuples.push(await keyWord(rank), await valueWord(rank));
    }
    return ['tuples', tuples.length / 2, ...tuples].join(' ');
  },
  async by(words) {
    const [way, word] = words.split(' ');
    return file.structures.includes(way) ? `rank ${await lower(readKey(word), way)}` : 'none';
  },
  async check() {
    const whole = await check(source);
    // However the work is divided, and whatever bytes come from, the report is the same.
    const bytes = new Uint8Array(readFileSync(path));
    const held = sourceOf(bytes);
    const helper = (task, advance) => checkPart(held, task, { advance });
    const parted = await check(bytes, { helpers: [helper], partBytes: PART_BYTES });
    if (JSON.stringify(parted) !== JSON.stringify(whole)) {
      throw new Error('a check in parts has another report');
    }
    const { findings } = whole;
    return findings.length === 0 ? 'clean' : `damaged ${findings[0].code}`;
  },
  async name(of) {
    return textWord(of === 'key' ? file.meta.keyName : file.meta.valueName);
  },
  async logical(of) {
    return textWord(of === 'key' ? file.meta.keyLogical : file.meta.valueLogical);
  },
  async derive(word) {
    const bytes = readHex(word.slice(1)) ?? new Uint8Array(0);
    const element = readElement(file.keyMeaning, textOf(bytes));
    const key = file.keyOfElement(element);
    if (key === null) {
      return 'none';
    }
    const { keyType } = file.header;
    if (!keyType.isBytes) {
      return `key ${numberWord(keyType.name, key)}`;
    }
    return `key ${bytesWord(typeof element === 'bigint' ? bytesOfNumber(element, keyType.fixed ?? 16) : element)}`;
  },
};

const textWord = (text) => (text === '' ? 'none' : `text ${bytesWord(new TextEncoder().encode(text))}`);

async function answer(line) {
  const [name] = line.split(' ', 1);
  const rest = line.slice(name.length + 1);
  const act = ANSWERS[name];
  if (!act) {
    return `error unknown request ${name}`;
  }
  try {
    if (damage && name !== 'open' && name !== 'check') {
      throw damage;
    }
    return await act(rest);
  } catch (error) {
    if (error instanceof Damage) {
      return `damaged ${error.code}`;
    }
    return `error ${String(error?.stack ?? error).replace(/\s+/g, ' ')}`;
  }
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  process.stdout.write(`${await answer(line)}\n`);
}
