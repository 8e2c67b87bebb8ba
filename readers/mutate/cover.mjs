/**
 * Runs the driver of the JavaScript reader, and tells which parts of it each file of the kit reaches.
 *
 *     node cover.mjs FOLDER COUNTS OUTPUT < REQUESTS > ANSWERS
 *
 * COUNTS has the number of requests about each file. A line of OUTPUT is of a file, the first one of what is done
 * before: for each module the ranges of its text, and how often each was run.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, counts, output] = process.argv.slice(2);
const root = `${pathToFileURL(folder)}/`;
const session = new Session();
session.connect();

/** Asks the profiler, which answers at once. */
function post(method, parameters) {
  let answer;
  session.post(method, parameters, (error, result) => {
    if (error) {
      throw new Error(error.message);
    }
    answer = result;
  });
  return answer;
}

/** What was run since the last call. */
function taken() {
  const modules = {};
  for (const { url, functions } of post('Profiler.takePreciseCoverage').result) {
    if (url.startsWith(root)) {
      const ranges = functions.flatMap((one) => one.ranges);
      modules[url.slice(root.length)] = ranges.map((one) => [one.startOffset, one.endOffset, one.count]);
    }
  }
  return JSON.stringify(modules);
}

post('Profiler.enable');
post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
const left = JSON.parse(readFileSync(counts, 'utf8'));
const lines = [];
let answers = 0;
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = (text) => {
  answers += 1;
  if (answers === left[0]) {
    lines.push(taken());
    left.shift();
    answers = 0;
  }
  return write(text);
};
process.on('exit', () => writeFileSync(output, lines.join('\n')));
// What runs once, when modules are loaded, is of no file.
for (const name of ['node.js', 'src/check.js', 'src/pleach.js']) {
  await import(pathToFileURL(join(folder, name)));
}
lines.push(taken());
await import(pathToFileURL(join(folder, 'driver.mjs')));
