// Writes the asynchronous form of the Python package `truffle` from its synchronous one: node tools/gen-python-async.mjs
// With --check it only compares.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROOT } from './content.mjs'

const FOLDER = 'bindings/python/truffle/src/truffle'
/** Modules and what each becomes. */
const MODULES = { 'finding.py': 'async_finding.py', 'client.py': 'async_client.py' }

/** Classes, and the modules that have them. */
const NAMES = [
  [/^from \.session import Session$/m, 'from .session import AsyncSession'],
  [/^from \.finding import Finding$/m, 'from .async_finding import AsyncFinding'],
  [/^class Finding\(Session\):/m, 'class AsyncFinding(AsyncSession):'],
  [/^class Truffle\(Finding\):/m, 'class AsyncTruffle(AsyncFinding):'],
]

/** Returns the asynchronous form of a module. Its docstrings lead to those of the synchronous form. */
export function asyncOf(module, text) {
  let own = text
    .replace(/^"""[^]*?"""$/m, `"""Generated from ${module} by tools/gen-python-async.mjs; change that."""`)
    .replace(
      /^(class \w+.*:\n {4}""").*?"""/ms,
      '$1The same for `asyncio`: each method returns a coroutine."""',
    )
    .replace(/^ {8}""".*?"""$/gms, '        """See the method of `Truffle` with this name."""')
    .replace(/^ {4}def (?!_)/gm, '    async def ')
    .replaceAll('return self._ask(', 'return await self._ask(')
  for (const [pattern, name] of NAMES) own = own.replace(pattern, name)
  return own
}

/** Paths and texts of the generated modules. */
export function generated() {
  return Object.entries(MODULES).map(([from, to]) => ({
    path: join(ROOT, FOLDER, to),
    text: asyncOf(from, readFileSync(join(ROOT, FOLDER, from), 'utf8')),
  }))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { path, text } of generated()) {
    if (!process.argv.includes('--check')) writeFileSync(path, text)
    else if (readFileSync(path, 'utf8') !== text) {
      console.error(`${path} is out of date: node tools/gen-python-async.mjs`)
      process.exitCode = 1
    }
  }
}
