/**
 * Checks of the grid: the way of every border through the segments, and every mark, while the tuple lines pass.
 *
 * Borders come in order. The way of each is compared with that of the border before it: the parts between the two
 * must have no borders, and lead to the line of the second one. In the last segment of the way the mark must be where
 * the rule puts it, with nothing marked between it and the mark before.
 */
import { popcount } from '../classic.js';
import { Stream, firstNonZero } from './reader.js';

/**
 * @typedef {import('./reader.js').Job} Job
 * @typedef {import('../header.js').Header} Header
 *
 * @typedef {object} Step a segment on the way of a border
 * @property {number} number of the segment; -1 of the first one
 * @property {number} baseHigh
 * @property {number} baseLow
 * @property {number} first
 * @property {number} kind
 * @property {number} field the number in its form
 * @property {number} shift
 * @property {number} part of the border
 *
 * @typedef {{steps: number[], segments: number, units: number, isOver: boolean}} Counts
 */

/** Thrown where the grid breaks a rule: its rest is not looked at. */
class Fault {
  /** @param {number} at @param {number} length @param {string} text */
  constructor(at, length, text) {
    this.at = at;
    this.length = length;
    this.text = text;
  }
}

/**
 * `(one - other) >> shift`, 0 if one is below the other. A result beyond 2^53 is near to what it is.
 * @param {number} oneHigh
 * @param {number} oneLow
 * @param {number} otherHigh
 * @param {number} otherLow
 * @param {number} shift
 */
function distance(oneHigh, oneLow, otherHigh, otherLow, shift) {
  let low = oneLow - otherLow;
  let high = oneHigh - otherHigh;
  if (low < 0) {
    low += 2 ** 32;
    high -= 1;
  }
  if (high < 0) {
    return 0;
  }
  if (shift >= 32) {
    return high >>> (shift - 32);
  }
  return shift === 0
    ? high * 2 ** 32 + low
    : (high >>> shift) * 2 ** 32 + (((low >>> shift) | (high << (32 - shift))) >>> 0);
}

/** Parts of a segment. @param {Step} step */
function partsOf(step) {
  return step.kind === 0 ? step.field + 1 : step.kind === 1 ? 32 * (step.field + 1) : 24;
}

const MARK = 'each border of lines must have its mark';

/** Bits below a cell. @param {number} cell up to 32 */
const bitsBelow = (cell) => (cell >= 32 ? 0xffffffff : (1 << cell) - 1);

export class GridCheck {
  /**
   * @param {Job} job
   * @param {Header} header
   */
  constructor(job, header) {
    this.job = job;
    this.header = header;
    const grid = /** @type {import('../header.js').Placed<import('../shape.js').GridShape>} */ (header.grid);
    this.offset = grid.offset;
    this.shape = grid.shape;
    this.unitStream = new Stream(job.pages, 4);
    // Segments of different steps are far apart.
    this.streams = Array.from({ length: 10 }, () => new Stream(job.pages, 1));
    /** @type {Step[]} */
    this.way = [];
    this.free = 0;
    this.lastHigh = 0;
    this.lastLow = 0;
    this.steps = new Array(10).fill(0);
    this.segments = 0;
    this.units = 0;
    this.isOver = false;
    const { root } = this.shape;
    this.root = this.stepOf(-1, Number(root.base >> 32n), Number(root.base & 0xffffffffn), root.first, root.form);
  }

  /**
   * @param {number} number
   * @param {number} baseHigh
   * @param {number} baseLow
   * @param {number} first
   * @param {number} form
   * @returns {Step}
   */
  stepOf(number, baseHigh, baseLow, first, form) {
    return {
      number,
      baseHigh,
      baseLow,
      first,
      kind: (form >>> 24) & 3,
      field: form & 0xffffff,
      shift: form >>> 26,
      part: 0,
    };
  }

  /**
   * Begins behind a border that is not the first one. Its mark says how far the marks before it have come: with a
   * mark that is not where the rule puts it, the check of the lines before this one has found a fault.
   * @param {number} border
   * @param {number} high
   * @param {number} low
   */
  begin(border, high, low) {
    try {
      const way = this.wayOf(high, low);
      this.free = this.cellOf(way[way.length - 1], border) + 1;
      this.way = way;
      this.lastHigh = high;
      this.lastLow = low;
    } catch (error) {
      this.fail(error);
    }
  }

  /**
   * The cell with the mark of a border, from the part of the border on.
   * @param {Step} step
   * @param {number} border
   */
  cellOf(step, border) {
    const isMarks = step.kind === 2;
    for (let number = Math.floor(step.part / 32); ; number++) {
      const unit = step.first + number;
      if (isMarks ? number > 0 : unit >= this.shape.units) {
        throw isMarks ? this.ofSegment(step.number, MARK) : this.ofUnit(this.shape.units - 1, MARK);
      }
      const at = isMarks ? 0 : this.unit(unit);
      const { view } = this.unitStream;
      const marks = isMarks ? step.field : view.getUint32(at, true);
      const own = border - (isMarks ? step.first : view.getUint32(at + 4, true));
      if (own < 0 || own >= popcount(marks)) {
        continue;
      }
      for (let cell = Math.max(step.part - 32 * number, 0); cell < 32; cell++) {
        if (((marks >>> cell) & 1) !== 0 && popcount(marks & bitsBelow(cell)) === own) {
          return 32 * number + cell;
        }
      }
    }
  }

  async checkPadding() {
    const { shape, job, offset } = this;
    const zeros = await job.source.read(offset + 16 * shape.segments, shape.unitsAt - 16 * shape.segments);
    const guard = await job.source.read(offset + shape.bytes - 64, 64);
    if (firstNonZero(zeros, 0, zeros.length) >= 0 || firstNonZero(guard, 0, 64) >= 0) {
      job.rule('padding', 'GRID', offset, shape.bytes, 0, 'other bytes', 'padding must be zero');
    }
  }

  /**
   * Looks at the border behind a tuple line, whose last word this is.
   * @param {number} border
   * @param {number} high
   * @param {number} low
   */
  border(border, high, low) {
    if (this.isOver) {
      return;
    }
    try {
      this.pass(border, high, low);
    } catch (error) {
      this.fail(error);
    }
  }

  /** Notes a fault. What is none goes on. @param {unknown} error */
  fail(error) {
    if (!(error instanceof Fault)) {
      throw error;
    }
    this.isOver = true;
    this.job.rule('grid', 'GRID', this.offset + error.at, error.length, 'those of the lines', 'others', error.text);
  }

  /** @param {number} border @param {number} high @param {number} low */
  pass(border, high, low) {
    const before = this.way;
    let free = this.free;
    let way = before;
    const part = before.length > 0 ? this.samePart(high, low) : -1;
    let counts = null;
    if (part < 0) {
      way = this.wayOf(high, low);
      if (before.length === 0 || before[before.length - 1].number !== way[way.length - 1].number) {
        const units = this.leave(before, free, border);
        this.between(before, way, border);
        this.ends(before, way);
        counts = { units, segments: this.begins(before, way, high, low) };
        free = 0;
      }
    }
    const last = way[way.length - 1];
    const cell = Math.max(part < 0 ? last.part : part, free);
    this.mark(last, cell, free, border);
    // Nothing was changed before this, since a page may have been missing.
    if (counts) {
      this.units += counts.units;
      this.segments += counts.segments;
    }
    last.part = part < 0 ? last.part : part;
    this.way = way;
    this.free = cell + 1;
    this.lastHigh = high;
    this.lastLow = low;
    this.steps[way.length - 1] += 1;
  }

  /**
   * The part of a word in the last segment of the way, if the way is that of the border before; else -1.
   * @param {number} high
   * @param {number} low
   */
  samePart(high, low) {
    const { way } = this;
    for (let depth = 0; depth + 1 < way.length; depth++) {
      if (this.partOf(way[depth], high, low) !== way[depth].part) {
        return -1;
      }
    }
    return this.partOf(way[way.length - 1], high, low);
  }

  /** @param {Step} step @param {number} high @param {number} low */
  partOf(step, high, low) {
    return Math.min(distance(high, low, step.baseHigh, step.baseLow, step.shift), partsOf(step) - 1);
  }

  /**
   * Follows a word from the first segment down.
   * @param {number} high
   * @param {number} low
   * @returns {Step[]}
   */
  wayOf(high, low) {
    const { shape, header } = this;
    const way = [];
    let step = { ...this.root };
    for (;;) {
      const isNone = step.baseHigh === 0xffffffff && step.baseLow === 0xffffffff;
      const fits = step.shift < 8 * header.wordBytes && (header.wordBytes === 8 || step.baseHigh === 0 || isNone);
      if (step.kind === 3 || !fits) {
        throw this.ofSegment(step.number, 'a segment must have parts of a known kind and width');
      }
      step.part = this.partOf(step, high, low);
      way.push(step);
      if (step.kind === 2) {
        return way;
      }
      if (step.kind === 1) {
        if (step.first + step.field + 1 > shape.units) {
          throw this.ofSegment(step.number, 'a segment must have its units inside the section');
        }
        return way;
      }
      const isBehind = step.number < step.first && step.first + step.field + 1 <= shape.segments;
      if (!isBehind || way.length - 1 >= shape.steps) {
        const text = 'a segment must have its segments behind it, and not too many steps down';
        throw this.ofSegment(step.number, text);
      }
      step = this.segment(way.length, step.first + step.part);
    }
  }

  /** @param {number} depth @param {number} number */
  segment(depth, number) {
    const stream = this.streams[depth];
    const at = stream.at(this.offset + 16 * number, 16);
    const { view } = stream;
    const [low, high] = [view.getUint32(at, true), view.getUint32(at + 4, true)];
    return this.stepOf(number, high, low, view.getUint32(at + 8, true), view.getUint32(at + 12, true));
  }

  /** @param {number} number @param {string} text */
  ofSegment(number, text) {
    return number < 0 ? new Fault(0, this.shape.bytes, text) : new Fault(16 * number, 16, text);
  }

  /** @param {number} number @param {string} text */
  ofUnit(number, text) {
    return new Fault(this.shape.unitsAt + Math.floor(number / 1024) * 8192, 8192, text);
  }

  /** Place of a unit in the stream. @param {number} number */
  unit(number) {
    return this.unitStream.at(this.offset + this.shape.unitsAt + 8 * number, 8);
  }

  /**
   * Checks the mark of a border, and that nothing is marked before it from a free cell on.
   * @param {Step} step
   * @param {number} cell
   * @param {number} free
   * @param {number} border
   */
  mark(step, cell, free, border) {
    if (step.kind === 2) {
      const below = popcount(step.field & bitsBelow(cell));
      if (cell >= 24 || ((step.field >>> cell) & 1) === 0 || step.first + below !== border) {
        throw this.ofSegment(step.number, MARK);
      }
      return;
    }
    this.empty(step, free, cell, border);
    const unit = step.first + Math.floor(cell / 32);
    if (unit >= this.shape.units) {
      throw this.ofUnit(this.shape.units - 1, MARK);
    }
    const at = this.unit(unit);
    const { view } = this.unitStream;
    const marks = view.getUint32(at, true);
    const own = cell % 32;
    if (((marks >>> own) & 1) === 0 || view.getUint32(at + 4, true) + popcount(marks & bitsBelow(own)) !== border) {
      throw this.ofUnit(unit, MARK);
    }
  }

  /**
   * Checks that cells of a segment with units have no marks, and so many before them.
   * @param {Step} step
   * @param {number} from
   * @param {number} to
   * @param {number} border
   */
  empty(step, from, to, border) {
    for (let number = Math.floor(from / 32); number * 32 < to; number++) {
      const unit = step.first + number;
      if (unit >= this.shape.units) {
        return;
      }
      const at = this.unit(unit);
      const { view } = this.unitStream;
      const marks = view.getUint32(at, true);
      const below = popcount(marks & bitsBelow(Math.max(from - 32 * number, 0)));
      const above = popcount(marks & bitsBelow(Math.min(to - 32 * number, 32)));
      if (below !== above || view.getUint32(at + 4, true) + below !== border) {
        throw this.ofUnit(unit, 'units must count the marks before them, and have no others');
      }
    }
  }

  /**
   * Checks that the last segment of a way has no more marks. Returns its units.
   * @param {Step[]} way
   * @param {number} free
   * @param {number} border
   */
  leave(way, free, border) {
    const step = way[way.length - 1];
    if (!step) {
      return 0;
    }
    if (step.kind === 2) {
      if (step.first + popcount(step.field) !== border) {
        throw this.ofSegment(step.number, 'a segment must have the marks of its borders only');
      }
      return 0;
    }
    const end = Math.max(32 * (step.field + 1), Math.ceil(free / 32) * 32);
    this.empty(step, free, end, border);
    return end / 32;
  }

  /**
   * Checks that segments which a way enters begin with the word that led it there. Returns the segments below them.
   * @param {Step[]} before
   * @param {Step[]} way
   * @param {number} high
   * @param {number} low
   */
  begins(before, way, high, low) {
    let segments = 0;
    let isNew = false;
    for (const step of way) {
      isNew ||= !before.some((old) => old.number === step.number);
      if (!isNew) {
        continue;
      }
      segments += step.kind === 0 ? step.field + 1 : 0;
      if (step.baseHigh !== high || step.baseLow !== low) {
        throw this.ofSegment(step.number, 'a segment must begin with its first border');
      }
    }
    return segments;
  }

  /**
   * Checks that segments which a way leaves end with the word that led it there.
   * @param {Step[]} before
   * @param {Step[]} way
   */
  ends(before, way) {
    let isLeft = false;
    for (const step of before) {
      isLeft ||= !way.some((next) => next.number === step.number);
      if (!isLeft) {
        continue;
      }
      /** @param {number} shift */
      const span = (shift) => distance(this.lastHigh, this.lastLow, step.baseHigh, step.baseLow, shift);
      let isRight;
      if (step.kind === 0) {
        isRight = span(step.shift) === step.field;
      } else if (step.kind === 1) {
        isRight = Math.floor(span(step.shift) / 32) === step.field;
      } else {
        isRight = span(step.shift) < 24 && (step.shift === 0 || span(step.shift - 1) >= 24);
      }
      if (!isRight || (span(0) === 0 && step.shift !== 0)) {
        throw this.ofSegment(step.number, 'a segment must end with its last border');
      }
    }
  }

  /**
   * Checks the parts between two ways, which have no borders: they lead to the line of the second one.
   * @param {Step[]} before
   * @param {Step[]} way
   * @param {number} border
   */
  between(before, way, border) {
    let same = 0;
    while (
      same < before.length &&
      same < way.length &&
      before[same].number === way[same].number &&
      before[same].part === way[same].part
    ) {
      same += 1;
    }
    for (let depth = same; depth < Math.max(before.length, way.length); depth++) {
      const one = before[depth]?.kind === 0 ? before[depth] : null;
      const other = way[depth]?.kind === 0 ? way[depth] : null;
      if (one && other && one.number === other.number) {
        this.without(one, one.part + 1, other.part, border, depth);
        continue;
      }
      if (one) {
        this.without(one, one.part + 1, one.field + 1, border, depth);
      }
      if (other) {
        this.without(other, 0, other.part, border, depth);
      }
    }
  }

  /**
   * Checks parts without borders.
   * @param {Step} step
   * @param {number} from
   * @param {number} to
   * @param {number} border
   * @param {number} depth
   */
  without(step, from, to, border, depth) {
    for (let part = from; part < to; part++) {
      const found = this.segment(depth + 1, step.first + part);
      const isAll = found.baseHigh === 0xffffffff && found.baseLow === 0xffffffff;
      if (!isAll || found.first !== border || found.kind !== 2 || found.field !== 0 || found.shift !== 0) {
        throw this.ofSegment(found.number, 'a part without borders must lead to the next line');
      }
    }
  }

  /** Checks what is left when all borders have passed. */
  async end() {
    const borders = Math.max(this.header.lines - 1, 0);
    if (borders === 0 || this.isOver) {
      return;
    }
    await this.job.once(() => {
      try {
        const units = this.leave(this.way, this.free, borders);
        this.between(this.way, [], borders);
        this.ends(this.way, []);
        this.units += units;
      } catch (error) {
        this.fail(error);
      }
    });
  }

  /** What the check of some lines has seen. */
  counts() {
    const { steps, segments, units, isOver } = this;
    return { steps, segments, units, isOver };
  }
}

/**
 * Checks how many there are of everything.
 * @param {Job} job
 * @param {Header} header
 * @param {Counts[]} parts what the checks of all lines have seen
 */
export async function checkCounts(job, header, parts) {
  const { offset, shape } = /** @type {import('../header.js').Placed<import('../shape.js').GridShape>} */ (header.grid);
  const steps = new Array(10).fill(0);
  let [segments, units] = [0, 0];
  for (const part of parts) {
    part.steps.forEach((count, at) => {
      steps[at] += count;
    });
    segments += part.segments;
    units += part.units;
  }
  if (steps.reduce((all, one) => all + one, 0) + 1 !== header.lines || parts.some((part) => part.isOver)) {
    return;
  }
  let most = 0;
  steps.forEach((count, at) => {
    most = count > 0 ? at : most;
  });
  /** @param {number} after */
  const left = (after) => steps.slice(after + 1).reduce((all, one) => all + one, 0);
  let usual = most > 0 ? 1 : 0;
  while (usual < most && left(usual) > Math.floor(header.lines / 50)) {
    usual += 1;
  }
  if (most !== shape.steps || usual !== shape.usualSteps) {
    const [expected, found] = [`${most} and ${usual}`, `${shape.steps} and ${shape.usualSteps}`];
    job.rule('grid', 'GRID', offset, shape.bytes, expected, found, 'steps must be those of the borders');
  }
  if (units === 0) {
    // There is always one.
    const one = await job.source.read(offset + shape.unitsAt, 8);
    units = firstNonZero(one, 0, 8) < 0 ? 1 : 0;
  }
  if (segments !== shape.segments || units !== shape.units) {
    const [expected, found] = [`${segments} and ${units}`, `${shape.segments} and ${shape.units}`];
    job.rule('grid', 'GRID', offset, shape.bytes, expected, found, 'segments and units must belong to segments');
  }
}
