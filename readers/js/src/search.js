/**
 * Searches: from a word or a byte key to its rank, by any structure of the file.
 *
 * Whatever a structure says is clamped to what exists, and the tuple lines decide.
 */
import { compareBytes } from './mask.js';
import { pageRecord, pagedLevels, popcount, probe, slotInPage, slotOf } from './classic.js';
import { kindOf, numberOf, shiftOf, slotBytes, slotsOf, TEXT_PAGE_KEYS } from './shape.js';
import { differAt, sliceOf, trieNode } from './text.js';

/** Bytes of the top of the spine that are read at once. */
const TOP_BYTES = 64 << 10;
/** Structures by which words are found, the one of fewest reads first. */
const PREFERRED = ['grid', 'spine', 'harmonia', 'btree', 'fast', 'lines'];

/** @param {Uint8Array} bytes */
export const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);

/**
 * @param {DataView} view
 * @param {number} at
 * @param {number} bytes 1, 2, 4, 8 or 16
 * @returns {bigint}
 */
export function wordAt(view, at, bytes) {
  switch (bytes) {
    case 1:
      return BigInt(view.getUint8(at));
    case 2:
      return BigInt(view.getUint16(at, true));
    case 4:
      return BigInt(view.getUint32(at, true));
    case 8:
      return view.getBigUint64(at, true);
    default:
      return (view.getBigUint64(at + 8, true) << 64n) | view.getBigUint64(at, true);
  }
}

/**
 * Child of a query in a spine line.
 * @param {DataView} line
 * @param {number} encoding
 * @param {number} wordBytes
 * @param {bigint} query
 */
export function spineChild(line, encoding, wordBytes, query) {
  const slots = slotsOf(encoding, wordBytes);
  const width = slotBytes(encoding, wordBytes);
  let code = query;
  if (encoding !== 0) {
    const base = wordAt(line, 62 - wordBytes, wordBytes);
    const most = (1n << BigInt(8 * width)) - 1n;
    code = query < base ? 0n : (query - base) >> BigInt(line.getUint8(62));
    code = code < most ? code : most;
  }
  let child = 0;
  while (child < slots && wordAt(line, child * width, width) < code) {
    child += 1;
  }
  return child;
}

export class Search {
  /** @param {import('./pleach.js').Pleach} file */
  constructor(file) {
    this.file = file;
    this.header = file.header;
    this.blocks = file.blocks;
    const own = this.header.structures();
    this.way = PREFERRED.find((name) => own.includes(name)) ?? 'lines';
  }

  /** @param {string} tag */
  section(tag) {
    const section = this.header.find(tag);
    if (!section) {
      throw new RangeError(`the file has no section ${tag}`);
    }
    return section;
  }

  /** Returns a tuple line. @param {number} number */
  async line(number) {
    return viewOf(await this.blocks.bytes(this.header.line, 64 * number, 64));
  }

  /** Returns the last word of a line; all ones in a line that is not full. @param {number} number */
  async lastWord(number) {
    const { wordBytes, lineTuples } = this.header;
    return wordAt(await this.line(number), (lineTuples - 1) * wordBytes, wordBytes);
  }

  /** Returns the word of a rank. @param {number} rank */
  async word(rank) {
    const { lineTuples, wordBytes } = this.header;
    return wordAt(await this.line(Math.floor(rank / lineTuples)), (rank % lineTuples) * wordBytes, wordBytes);
  }

  /**
   * Returns how many tuples have smaller words.
   * @param {bigint} word
   * @param {string} [way] structure to use
   */
  async lowerWord(word, way = this.way) {
    if (this.header.tuples === 0) {
      return 0;
    }
    switch (way) {
      case 'spine':
        return this.rankFrom(await this.bySpine(word), word);
      case 'grid':
        return this.rankFrom(await this.byGrid(word), word);
      case 'harmonia':
        return this.rankNear(await this.byHarmonia(word), word);
      case 'btree':
        return this.rankNear(await this.byBtree(word), word);
      case 'fast':
        return this.rankNear(await this.byFast(word), word);
      default:
        return this.inLine(await this.bisect(0, this.header.lines - 1, word), word);
    }
  }

  /**
   * Returns how many tuples have smaller or equal words.
   * @param {bigint} word
   * @param {string} [way]
   */
  async upperWord(word, way = this.way) {
    const next = word + 1n;
    return next >> BigInt(8 * this.header.wordBytes) === 0n ? this.lowerWord(next, way) : this.header.tuples;
  }

  /**
   * Returns the first line in a range whose last word is not below a word; the last one if there is none.
   * @param {number} first
   * @param {number} last
   * @param {bigint} word
   */
  async bisect(first, last, word) {
    let [low, high] = [first, last];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if ((await this.lastWord(middle)) < word) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /**
   * Goes right from a line to the first one whose last word is not below a word, by steps that double.
   * @param {number} line
   * @param {bigint} word
   */
  async rankFrom(line, word) {
    const most = this.header.lines - 1;
    let low = Math.min(line, most);
    let step = 1;
    let high = low;
    while ((await this.lastWord(high)) < word) {
      if (high === most) {
        return this.header.tuples;
      }
      low = high + 1;
      high = Math.min(high + step, most);
      step *= 2;
    }
    return this.inLine(await this.bisect(low, high, word), word);
  }

  /**
   * Goes from a rank that is near to either side.
   * @param {number} rank
   * @param {bigint} word
   */
  async rankNear(rank, word) {
    let line = Math.floor(Math.min(rank, this.header.tuples - 1) / this.header.lineTuples);
    let step = 1;
    while (line > 0 && (await this.lastWord(line - 1)) >= word) {
      line = Math.max(line - step, 0);
      step *= 2;
    }
    return this.rankFrom(line, word);
  }

  /**
   * @param {number} number
   * @param {bigint} word
   */
  async inLine(number, word) {
    const { wordBytes, lineTuples, tuples } = this.header;
    const line = await this.line(number);
    let slot = 0;
    while (slot < lineTuples && wordAt(line, slot * wordBytes, wordBytes) < word) {
      slot += 1;
    }
    return Math.min(number * lineTuples + slot, tuples);
  }

  /** Returns a line at or left of that of a word. @param {bigint} word */
  async bySpine(word) {
    const section = this.section('SPIN');
    const shape = /** @type {import('./shape.js').SpineShape} */ (this.header.spine?.shape);
    const { wordBytes, lines } = this.header;
    const top = shape.levels.filter((level) => level.offset + 64 * level.lines <= TOP_BYTES);
    if (top.length > 0) {
      await this.blocks.bytes(section, 0, top[0].offset + 64 * top[0].lines);
    }
    let child = 0;
    for (const level of [...shape.levels].reverse()) {
      child = Math.min(child, level.lines - 1);
      const line = viewOf(await this.blocks.bytes(section, level.offset + 64 * child, 64));
      child = child * level.fanout + spineChild(line, level.encoding, wordBytes, word);
    }
    const groups = Math.ceil(lines / shape.childLines);
    const first = Math.min(child, groups - 1) * shape.childLines;
    return this.bisect(first, Math.min(first + shape.childLines, lines) - 1, word);
  }

  /** @param {bigint} word */
  async byGrid(word) {
    const section = this.section('GRID');
    const shape = /** @type {import('./shape.js').GridShape} */ (this.header.grid?.shape);
    let segment = shape.root;
    for (let step = 0; step <= 8; step++) {
      const number = numberOf(segment);
      const kind = kindOf(segment);
      const cells = kind === 0 ? number + 1 : kind === 1 ? 32 * (number + 1) : 24;
      const distance = word > segment.base ? (word - segment.base) >> BigInt(shiftOf(segment)) : 0n;
      const part = distance < BigInt(cells) ? Number(distance) : cells - 1;
      if (kind === 0) {
        const at = Math.min(segment.first + part, Math.max(shape.segments - 1, 0));
        const view = viewOf(await this.blocks.bytes(section, 16 * at, 16));
        segment = { base: view.getBigUint64(0, true), first: view.getUint32(8, true), form: view.getUint32(12, true) };
        continue;
      }
      if (kind === 1) {
        const at = Math.min(segment.first + Math.floor(part / 32), shape.units - 1);
        const view = viewOf(await this.blocks.bytes(section, shape.unitsAt + 8 * at, 8));
        return view.getUint32(4, true) + popcount(view.getUint32(0, true) & ((1 << (part % 32)) - 1));
      }
      return segment.first + popcount(number & ((1 << part) - 1));
    }
    return this.bisect(0, this.header.lines - 1, word);
  }

  /**
   * Number of words of an array that are below a word.
   * @param {import('./header.js').Section} section
   * @param {number} at
   * @param {number} count
   * @param {bigint} word
   */
  async below(section, at, count, word) {
    const { wordBytes } = this.header;
    const view = viewOf(await this.blocks.bytes(section, at, count * wordBytes));
    let below = 0;
    for (let slot = 0; slot < count; slot++) {
      below += wordAt(view, slot * wordBytes, wordBytes) < word ? 1 : 0;
    }
    return below;
  }

  /** @param {bigint} word */
  async byHarmonia(word) {
    const section = this.section('HARM');
    const shape = /** @type {import('./shape.js').HarmoniaShape} */ (this.header.harmonia?.shape);
    const slots = shape.strideBytes / shape.wordBytes;
    let node = 0;
    for (const level of shape.levels.slice(1)) {
      const view = viewOf(await this.blocks.bytes(section, shape.childrenAt + 4 * node, 4));
      const child = view.getUint32(0, true) + (await this.below(section, node * shape.strideBytes, slots, word));
      node = Math.min(Math.max(child, level.first), level.first + level.nodes - 1);
    }
    return (node - shape.inner) * shape.nodeKeys + (await this.below(section, node * shape.strideBytes, slots, word));
  }

  /** @param {bigint} word */
  async byBtree(word) {
    const section = this.section('BTRE');
    const shape = /** @type {import('./shape.js').BtreeShape} */ (this.header.btree?.shape);
    let node = 0;
    for (const [depth, level] of shape.levels.entries()) {
      node = Math.min(Math.max(node, level.first), level.first + level.nodes - 1);
      const view = viewOf(await this.blocks.bytes(section, 16 * node, 16));
      const slot = view.getUint32(0, true) + view.getUint16(8, true) * 2 ** 32;
      const first = view.getUint32(4, true) + view.getUint16(10, true) * 2 ** 32;
      const count = Math.min(view.getUint32(12, true) & 0xffff, shape.order - 1);
      const at = Math.min(slot, shape.nodes * shape.slots - shape.slots) * shape.wordBytes;
      node = first + (await this.below(section, shape.keysAt + at, count, word));
      if (depth + 1 === shape.levels.length) {
        return node;
      }
    }
    return 0;
  }

  /** @param {bigint} word */
  async byFast(word) {
    const section = this.section('FAST');
    const shape = /** @type {import('./classic.js').FastShape} */ (this.header.fast?.shape);
    if (shape.form !== 0) {
      return this.byPages(section, shape, word);
    }
    const { tree } = shape;
    const { keyBytes } = tree.geometry;
    let node = 0;
    for (let depth = 0; depth < tree.depth; depth++) {
      const slot = slotOf(tree, depth, node);
      let isRight = false;
      if (slot >= 0) {
        const view = viewOf(await this.blocks.bytes(section, slot * keyBytes, keyBytes));
        isRight = wordAt(view, 0, keyBytes) < word;
      }
      node = 2 * node + (isRight ? 1 : 0);
    }
    return node;
  }

  /**
   * Searches a compressed tree, page by page.
   * @param {import('./header.js').Section} section
   * @param {import('./classic.js').FastShape} shape
   * @param {bigint} query
   */
  async byPages(section, shape, query) {
    let page = 0;
    for (const [number, level] of pagedLevels(shape).entries()) {
      page = Math.min(page, level.last);
      const at = (shape.records[number] + page) * shape.recordBytes;
      const record = pageRecord(
        viewOf(await this.blocks.bytes(section, at, shape.recordBytes)),
        0,
        shape.geometry.keyBytes,
      );
      const tree = shape.narrow.get(record.width);
      if (!tree) {
        return 0;
      }
      const own = tree.pages[number];
      const found = probe(record, query);
      const part = page === own.last ? 1 : 0;
      let node = 0;
      for (let inside = 0; inside < own.levels; inside++) {
        const slot = slotInPage(tree, own, part, inside, node);
        let isRight = found === null;
        if (slot >= 0 && found) {
          const place = Math.min(record.place + slot * record.width, shape.bytes - 64);
          const word = wordAt(viewOf(await this.blocks.bytes(section, place, record.width)), 0, record.width);
          isRight = word < found.word || (found.above && word === found.word);
        }
        node = 2 * node + (isRight ? 1 : 0);
      }
      page = page * 2 ** own.levels + node;
    }
    return page;
  }

  /**
   * Returns how many tuples have smaller byte keys.
   * @param {Uint8Array} query
   * @param {string} [way]
   */
  async lowerBytes(query, way) {
    if (this.header.tuples === 0) {
      return 0;
    }
    if ((way ?? 'trie') === 'trie' && this.header.trie) {
      return this.byTrie(query);
    }
    const mask = /** @type {import('./mask.js').Mask} */ (this.file.mask);
    const place = mask.place(query);
    if (!place.isKey) {
      return place.isAfter ? this.upperWord(place.word, way) : this.lowerWord(place.word, way);
    }
    const low = await this.lowerWord(place.word, way);
    if (mask.isLossless || low === this.header.tuples || (await this.word(low)) !== place.word) {
      return low;
    }
    return this.bisectKeys(low, await this.upperWord(place.word, way), query);
  }

  /**
   * Returns the first rank in a range whose key is not below a query, or the end of the range.
   * @param {number} first
   * @param {number} end
   * @param {Uint8Array} query
   */
  async bisectKeys(first, end, query) {
    let [low, high] = [first, end];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (compareBytes(await this.file.byteKey(middle), query) < 0) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /** @param {number} number */
  async trieNodeAt(number) {
    const nodes = this.header.trie?.shape.nodes ?? 1;
    return trieNode(viewOf(await this.blocks.bytes(this.section('TRIE'), 128 * Math.min(number, nodes - 1), 128)), 0);
  }

  /**
   * Returns the outermost page under a node.
   * @param {import('./text.js').TrieNode} node
   * @param {boolean} isLast
   */
  async outermostPage(node, isLast) {
    let own = node;
    for (let step = 0; step < 64; step++) {
      const child = isLast ? own.children[own.children.length - 1] : own.children[0];
      if ('first' in child) {
        return this.clampPage(child.first + (isLast ? child.more : 0));
      }
      own = await this.trieNodeAt(child.node);
    }
    return 0;
  }

  /** @param {number} page */
  clampPage(page) {
    return Math.min(page, (this.header.text?.shape.pages ?? 1) - 1);
  }

  /** Returns the first key of a page. @param {number} page */
  async headOf(page) {
    return (await this.file.textPage(page)).head;
  }

  /** @param {Uint8Array} query */
  async byTrie(query) {
    const path = [];
    let number = 0;
    let pages = { first: 0, more: 0 };
    for (let step = 0; step < 64; step++) {
      const node = await this.trieNodeAt(number);
      path.push(node);
      const slice = sliceOf(query, node.prefix);
      // A node of pages has one child, whatever slots a forged one tells.
      const slot = node.isRun ? 0 : node.slices.filter((one) => one <= slice).length;
      const child = node.children[slot];
      if ('first' in child) {
        pages = child;
        break;
      }
      if (child.node <= number) {
        break;
      }
      number = child.node;
    }
    const beside = await this.besidePrefix(path, query);
    return this.lowerInPage(beside >= 0 ? beside : await this.amongPages(pages, query), query);
  }

  /**
   * A search passes over what the keys of a node share. If the query does not share it, returns the page beside
   * which it belongs, else -1.
   * @param {import('./text.js').TrieNode[]} path
   * @param {Uint8Array} query
   */
  async besidePrefix(path, query) {
    const last = path[path.length - 1];
    if (last.prefix === 0) {
      return -1;
    }
    const head = await this.headOf(await this.outermostPage(last, true));
    const at = differAt(head, query, last.prefix);
    const node = at < 0 ? undefined : path.find((one) => one.prefix > at);
    if (!node) {
      return -1;
    }
    return this.outermostPage(node, (query[at] ?? 0) > (head[at] ?? 0));
  }

  /**
   * Returns the last of several pages whose head is below a query, or else the first.
   * @param {{first: number, more: number}} pages
   * @param {Uint8Array} query
   */
  async amongPages(pages, query) {
    let [low, high] = [this.clampPage(pages.first), this.clampPage(pages.first + pages.more)];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (compareBytes(await this.headOf(middle), query) < 0) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  /**
   * Returns the rank of a query in a page. Where its equals may begin in pages before, these are searched, too.
   * @param {number} page
   * @param {Uint8Array} query
   */
  async lowerInPage(page, query) {
    const first = page * TEXT_PAGE_KEYS;
    const rank = await this.bisectKeys(first, Math.min(first + TEXT_PAGE_KEYS, this.header.tuples), query);
    if (rank === first && first > 0 && compareBytes(await this.file.byteKey(first - 1), query) >= 0) {
      return this.bisectKeys(0, first, query);
    }
    return rank;
  }
}
