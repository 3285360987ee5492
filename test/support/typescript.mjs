import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import Module, { createRequire } from 'node:module'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')
const SMALL_CLOUD = join(ROOT, 'packages/small-cloud/src')
/** The compiled form of each source, after a line with the digest of what it was made from. */
const CACHE = join(ROOT, 'node_modules/.cache/crucible/typescript')
const OPTIONS = {
  swcrc: false,
  jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
  module: { type: 'commonjs' },
}

const require = createRequire(import.meta.url)
const COMPILER = `${require('@swc/core/package.json').version} ${JSON.stringify(OPTIONS)}`
const digestOf = (...texts) => createHash('sha256').update(texts.join('\0')).digest('hex')

function readCompiled(path, digest) {
  try {
    const text = readFileSync(path, 'utf8')
    const end = text.indexOf('\n')
    return text.slice(0, end) === `// ${digest}` ? text.slice(end + 1) : undefined
  } catch {
    return undefined
  }
}

function compile(source, path) {
  const digest = digestOf(COMPILER, path, source)
  const compiled = join(CACHE, `${digestOf(path).slice(0, 32)}.js`)
  const known = readCompiled(compiled, digest)
  if (known !== undefined) return known
  const { code } = require('@swc/core').transformSync(source, { ...OPTIONS, filename: path })
  mkdirSync(CACHE, { recursive: true })
  writeFileSync(`${compiled}.${process.pid}`, `// ${digest}\n${code}`)
  renameSync(`${compiled}.${process.pid}`, compiled)
  return code
}

// For a child process of a test: `node --import <this file> -e "require('./some.ts')"` runs the sources as Jest does.
Module._extensions['.ts'] = (module, path) => module._compile(compile(readFileSync(path, 'utf8'), path), path)
// Extensions are tried in order: `./catalog` is catalog.ts, not catalog.json in the same folder.
const json = Module._extensions['.json']
delete Module._extensions['.json']
Module._extensions['.json'] = json

// package.json's `imports` lead to dist/.
const resolve = Module._resolveFilename
Module._resolveFilename = (request, ...others) =>
  resolve(request.replace(/^#small-cloud(?=\/|$)/, SMALL_CLOUD), ...others)
