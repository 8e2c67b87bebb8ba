/**
 * What can go wrong: a file is refused by a numbered rule, it is damaged, or its bytes cannot be read.
 */

/** Numbers, names and sentences of the rules by which a reader refuses a file. */
export const RULES = [
  ['magic', 'this is not a Pleach file'],
  ['truncated', 'the file is shorter than it says'],
  ['superblock-sum', 'the superblock does not match its sum'],
  ['version', 'the file has another version of the format'],
  ['feature', 'the file needs a feature that this reader does not know'],
  ['extended', 'the file is longer than it says'],
  ['pages', 'the length of the file is not that of whole pages of 4096 bytes, four at least'],
  ['key-type', 'the type of the keys is unknown, or has another size'],
  ['value-type', 'the type of the values is unknown, or has another size'],
  ['unique', 'the mark for unique keys is neither 0 nor 1'],
  ['table-place', 'the section table is not in the second page'],
  ['table-entries', 'the section table has more than 31 entries'],
  ['table-sum', 'the section table does not match its sum'],
  ['first-section', 'the first section does not begin at byte 8192'],
  ['alignment', 'a section does not begin on a multiple of 4096 bytes'],
  ['section-order', 'a section begins before the one before it, or behind the closing section table'],
  ['section-end', 'a section reaches beyond its extent'],
  ['section-gap', 'there are 2 MiB or more behind a section'],
  ['section-large', 'META or MASK is larger than any valid one'],
  ['flags', 'an entry of the section table has an unknown flag'],
  ['required-section', 'the file needs a section that this reader does not know'],
  ['section-twice', 'two sections have one tag'],
  ['reserved', 'a reserved byte of the section table is not zero'],
  ['sums-missing', 'SUMS or SUM2 is missing'],
  ['sum2-list', 'SUM2 has a list of sums'],
  ['sum2-length', 'SUM2 is not as long as the sums of SUMS'],
  ['sums-count', 'a list of sums has not one sum for each 8192 bytes'],
  ['sums-place', 'a list of sums is not in its section'],
  ['line-missing', 'LINE is missing'],
  ['word-bytes', 'words have not 4, 8 or 16 bytes, or more than keys'],
  ['short-words', 'the runs or the base of short words break a rule'],
  ['line-length', 'LINE has not the length of its tuples'],
  ['line-parameters', 'LINE has other parameters than its types give'],
  ['spine', 'SPIN has other parameters or another length than its levels give'],
  ['column', 'the parameters, elements or length of a column do not agree'],
  ['codes', 'CODE does not go with VALS'],
  ['text', 'the parameters, keys or length of TEXT do not agree'],
  ['trie', 'the parameters or length of TRIE do not agree, or it has no TEXT'],
  ['values-missing', 'values are byte strings, and VALS is missing'],
  ['packed', 'the parameters, keys or length of PACK do not agree'],
  ['grid', 'the parameters, units or length of GRID do not agree'],
  ['harmonia', 'the parameters, tuples or length of HARM do not agree'],
  ['btree', 'the parameters, tuples or length of BTRE do not agree'],
  ['fast', 'the parameters, tuples or length of FAST do not agree'],
  ['mask-missing', 'byte keys need a MASK, and other keys have none'],
  ['mask', 'MASK breaks a rule'],
  ['tail', 'TAIL has other elements than MASK says'],
  ['keys-missing', 'words are not whole keys, and TAIL, KEYS and TEXT are missing'],
  ['approximate', 'the file does not say rightly whether its keys are shorter than those they stand for'],
];

/** The file is refused: it breaks a rule on which reading depends. */
export class Refusal extends Error {
  /**
   * @param {string} rule name of the rule
   * @param {string} [detail] what was found
   */
  constructor(rule, detail = '') {
    const at = RULES.findIndex((entry) => entry[0] === rule);
    super(detail ? `${RULES[at][1]}: ${detail}` : RULES[at][1]);
    this.name = 'Refusal';
    this.rule = rule;
    this.number = at + 1;
  }
}

/** The file is damaged: bytes do not match their sum, or contradict each other. */
export class Damage extends Error {
  /**
   * @param {string} code the code of fsck
   * @param {string} section
   * @param {number} offset byte in the file
   * @param {string} text
   */
  constructor(code, section, offset, text) {
    super(`${section} is damaged at byte ${offset}: ${text}`);
    this.name = 'Damage';
    this.code = code;
    this.section = section;
    this.offset = offset;
  }
}

/** The bytes could not be read. This says nothing about the file. */
export class SourceError extends Error {
  /**
   * @param {string} kind one of: read, changed, no-ranges, encoded, blocked, missing, network, status
   * @param {string} text
   */
  constructor(kind, text) {
    super(text);
    this.name = 'SourceError';
    this.kind = kind;
  }
}
