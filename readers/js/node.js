/**
 * Files of node. Its `openAsBlob` gives wrong lengths for files of 4 GiB and more, so these are read by position.
 */
import { open } from 'node:fs/promises';
import { SourceError } from './src/error.js';
import { Counted } from './src/source.js';

/** A file that is open. */
export class FileSource extends Counted {
  /**
   * @param {import('node:fs/promises').FileHandle} handle
   * @param {number} bytes
   */
  constructor(handle, bytes) {
    super();
    this.handle = handle;
    this.bytes = bytes;
  }

  /**
   * Opens a file.
   * @param {string} path
   */
  static async open(path) {
    const handle = await open(path);
    return new FileSource(handle, (await handle.stat()).size);
  }

  /**
   * @param {number} offset
   * @param {number} length
   */
  async fetch(offset, length) {
    const bytes = new Uint8Array(length);
    let done = 0;
    while (done < length) {
      const { bytesRead } = await this.handle.read(bytes, done, length - done, offset + done);
      if (bytesRead === 0) {
        throw new SourceError('changed', 'the file was shortened while it was read');
      }
      done += bytesRead;
    }
    return bytes;
  }

  close() {
    return this.handle.close();
  }
}
