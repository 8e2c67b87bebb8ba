/**
 * SipHash-2-4 with 128 bits of output and a zero key. Numbers of 64 bits are pairs of 32, low half first.
 */

export class SipHash {
  constructor() {
    // v0 to v3, with the change that 128 bits of output ask for.
    this.v = new Uint32Array([
      0x70736575,
      0x736f6d65,
      0x6e646f6d ^ 0xee,
      0x646f7261,
      0x6e657261,
      0x6c796765,
      0x79746573,
      0x74656462,
    ]);
    this.held = new Uint8Array(8);
    this.count = 0;
    this.length = 0;
  }

  /** @param {number} rounds */
  rounds(rounds) {
    const v = this.v;
    let [al, ah, bl, bh, cl, ch, dl, dh] = v;
    let low, high;
    for (let round = 0; round < rounds; round++) {
      // a += b; b = rotated by 13 ^ a; a rotated by 32.
      low = (al >>> 0) + (bl >>> 0);
      ah = (ah + bh + (low > 0xffffffff ? 1 : 0)) | 0;
      al = low | 0;
      low = (bl << 13) | (bh >>> 19);
      high = (bh << 13) | (bl >>> 19);
      bl = low ^ al;
      bh = high ^ ah;
      low = al;
      al = ah;
      ah = low;
      // c += d; d = rotated by 16 ^ c.
      low = (cl >>> 0) + (dl >>> 0);
      ch = (ch + dh + (low > 0xffffffff ? 1 : 0)) | 0;
      cl = low | 0;
      low = (dl << 16) | (dh >>> 16);
      high = (dh << 16) | (dl >>> 16);
      dl = low ^ cl;
      dh = high ^ ch;
      // a += d; d = rotated by 21 ^ a.
      low = (al >>> 0) + (dl >>> 0);
      ah = (ah + dh + (low > 0xffffffff ? 1 : 0)) | 0;
      al = low | 0;
      low = (dl << 21) | (dh >>> 11);
      high = (dh << 21) | (dl >>> 11);
      dl = low ^ al;
      dh = high ^ ah;
      // c += b; b = rotated by 17 ^ c; c rotated by 32.
      low = (cl >>> 0) + (bl >>> 0);
      ch = (ch + bh + (low > 0xffffffff ? 1 : 0)) | 0;
      cl = low | 0;
      low = (bl << 17) | (bh >>> 15);
      high = (bh << 17) | (bl >>> 15);
      bl = low ^ cl;
      bh = high ^ ch;
      low = cl;
      cl = ch;
      ch = low;
    }
    v[0] = al;
    v[1] = ah;
    v[2] = bl;
    v[3] = bh;
    v[4] = cl;
    v[5] = ch;
    v[6] = dl;
    v[7] = dh;
  }

  /**
   * @param {number} low
   * @param {number} high
   */
  word(low, high) {
    this.v[6] ^= low;
    this.v[7] ^= high;
    this.rounds(2);
    this.v[0] ^= low;
    this.v[1] ^= high;
  }

  /** @param {Uint8Array} bytes */
  write(bytes) {
    const held = this.held;
    this.length += bytes.length;
    for (let at = 0; at < bytes.length; at++) {
      held[this.count++] = bytes[at];
      if (this.count === 8) {
        this.count = 0;
        this.word(
          held[0] | (held[1] << 8) | (held[2] << 16) | (held[3] << 24),
          held[4] | (held[5] << 8) | (held[6] << 16) | (held[7] << 24),
        );
      }
    }
  }

  /** Returns the 16 bytes of the hash, the first 64 bits of output first. */
  finish() {
    const held = this.held.fill(0, this.count);
    held[7] = this.length & 255;
    this.word(
      held[0] | (held[1] << 8) | (held[2] << 16) | (held[3] << 24),
      held[4] | (held[5] << 8) | (held[6] << 16) | (held[7] << 24),
    );
    const v = this.v;
    v[4] ^= 0xee;
    this.rounds(4);
    const low = [v[0] ^ v[2] ^ v[4] ^ v[6], v[1] ^ v[3] ^ v[5] ^ v[7]];
    v[2] ^= 0xdd;
    this.rounds(4);
    const high = [v[0] ^ v[2] ^ v[4] ^ v[6], v[1] ^ v[3] ^ v[5] ^ v[7]];
    const out = new DataView(new ArrayBuffer(16));
    [...low, ...high].forEach((word, at) => out.setInt32(4 * at, word, true));
    return new Uint8Array(out.buffer);
  }
}

/**
 * Returns the hash of some bytes as a number of 128 bits, the first 64 bits of output lowest.
 * @param {Uint8Array} bytes
 */
export function hash128(bytes) {
  const hash = new SipHash();
  hash.write(bytes);
  let number = 0n;
  for (const byte of hash.finish().reverse()) {
    number = (number << 8n) | BigInt(byte);
  }
  return number;
}
