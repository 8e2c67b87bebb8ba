/**
 * Helpers of a check: further workers of this script, with which the page has connected this one by ports.
 */
import { SourceError } from '../../readers/js/src/error.js';
import { HttpSource } from '../../readers/js/src/source.js';

/** What another worker needs to read the same file. */
function shareOf(source) {
  if (source instanceof HttpSource) {
    const { url, bytes, tag, time } = source;
    return { known: { url, bytes, tag, time } };
  }
  return { blob: source.blob };
}

/**
 * Returns what asks the worker behind a port, which answers one question at a time.
 * @param {MessagePort} port
 */
function asker(port) {
  let waits = null;
  port.onmessage = ({ data }) => {
    if (data.progress) {
      waits.advance(data.progress.bytes, data.progress.what);
    } else if (data.fault) {
      const { kind, rule, text } = data.fault;
      waits.reject(kind === 'source' ? new SourceError(rule, text) : new Error(text));
    } else {
      waits.resolve(data.answer);
    }
  };
  return (ask, data, advance = () => {}) =>
    new Promise((resolve, reject) => {
      waits = { resolve, reject, advance };
      port.postMessage({ id: 0, ask, ...data });
    });
}

/**
 * Returns what runs parts of a check of a file.
 * @param {MessagePort[]} ports
 * @param {object} source
 */
export function helpersOf(ports, source) {
  return ports.map((port) => {
    const ask = asker(port);
    const ready = ask('share', shareOf(source));
    ready.catch(() => {});
    return async (task, advance) => {
      await ready;
      return ask('part', { task }, advance);
    };
  });
}
