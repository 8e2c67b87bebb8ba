/**
 * Makes index.html of the sources: one file that needs no server, and works from a folder, where browsers load no
 * modules. `--check` compares instead.
 *
 * A module becomes a function that is called once and returns what it exports. Imports must have the form
 * `import { a, b } from './file.js';`, and there are no circles.
 */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const IMPORT = /^import\s*\{([^}]*)\}\s*from\s*'([^']+)';\n/gm;
const EXPORT_LIST = /^export\s*\{([^}]*)\};\n/gm;
const EXPORT = /^export ((?:async )?(?:function\*?|class|const|let) ([A-Za-z_$][\w$]*))/gm;

/** Returns one script of a module and of all that it imports, without comments of documentation. */
function bundle(entry) {
  const texts = [];
  const numbers = new Map();
  const add = (path) => {
    if (numbers.has(path)) {
      return numbers.get(path);
    }
    const exported = [];
    const text = readFileSync(path, 'utf8')
      .replace(IMPORT, (_, names, from) => `const {${names}} = module${add(resolve(dirname(path), from))};\n`)
      .replace(EXPORT_LIST, (_, names) => {
        exported.push(
          ...names
            .split(',')
            .map((name) => name.trim())
            .filter(Boolean),
        );
        return '';
      })
      .replace(EXPORT, (_, rest, name) => {
        exported.push(name);
        return rest;
      })
      .replace(/^[ \t]*\/\*\*[\s\S]*?\*\/\n?/gm, '')
      .replace(/\n{3,}/g, '\n\n')
      .trim();
    if (/^\s*(import|export)\b/m.test(text)) {
      throw new Error(`${path}: an import or export has another form`);
    }
    const number = numbers.size;
    numbers.set(path, number);
    texts.push(`const module${number} = (() => {\n${text}\nreturn { ${exported.join(', ')} };\n})();`);
    return number;
  };
  add(resolve(here, 'src', entry));
  return texts.join('\n\n');
}

const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** Texts that end or begin a script would do so inside of it, too. */
function checked(text) {
  if (/<\/script|<!--/i.test(text)) {
    throw new Error('a script holds what ends or hides a script');
  }
  return text;
}

function build() {
  const scripts = new Map(
    ['policy.js', 'page.js', 'worker.js'].map((name) => {
      const text = checked(`\n(() => {\n'use strict';\n${bundle(name)}\n})();\n`);
      return [name, text];
    }),
  );
  const style = `\n${readFileSync(resolve(here, 'src/style.css'), 'utf8').trim()}\n`;
  const policy = [
    "default-src 'none'",
    `script-src ${hash(scripts.get('policy.js'))} ${hash(scripts.get('page.js'))}`,
    `style-src ${hash(style)}`,
    'worker-src blob:',
    'connect-src http: https:',
    "form-action 'none'",
    "base-uri 'none'",
  ].join('; ');
  let page = readFileSync(resolve(here, 'src/index.html'), 'utf8');
  page = page.replace('POLICY', () => policy).replace('STYLE', () => style);
  for (const [name, text] of scripts) {
    page = page.replace(`SCRIPT ${name}`, () => text);
  }
  return page;
}

const page = build();
const place = resolve(here, 'index.html');
if (process.argv.includes('--check')) {
  if (readFileSync(place, 'utf8') !== page) {
    console.error('web/index.html is not that of its sources: run node web/build.mjs');
    process.exit(1);
  }
} else {
  writeFileSync(place, page);
  console.log(`${place}: ${page.length} bytes`);
}
