import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Script } from 'node:vm'
import type * as start from './start'

const lazily = createRequire(__filename)

/**
 * The read-only commands that people and scripts call often. The build bundles them with their libraries into one file, because finding and
 * reading those one by one takes longer than the rest of such a command. A process loads our code from the bundle or from its own files,
 * never from both, so these commands load nothing of `service/` and `workers/`.
 */
export const QUICK_COMMANDS: readonly string[] = [
  'artifacts',
  'checkpoints',
  'events',
  'jobs-for-completion',
  'list',
  'logs',
  'show',
]

export const QUICK_BUNDLE = join(__dirname, 'quick-commands.js')
/** V8's code cache from build time, usable by the same V8 only. */
export const QUICK_CODE_CACHE = `${QUICK_BUNDLE}.${process.version}-${process.arch}.cache`

/** The program from the bundle; `undefined` for commands outside the bundle, and without a bundle. */
export function loadQuick(args: readonly string[]): typeof start | undefined {
  const command = args.find((arg) => !arg.startsWith('-'))
  if (command === undefined || !QUICK_COMMANDS.includes(command) || !existsSync(QUICK_BUNDLE))
    return undefined
  const script = existsSync(QUICK_CODE_CACHE) ? compileQuick(readFileSync(QUICK_CODE_CACHE)) : undefined
  // Without a matching cache, Node's own one is used, which exists since 22.8.
  const isCompiled = script !== undefined && script.cachedDataRejected !== true
  return (isCompiled ? runQuick(script) : lazily(QUICK_BUNDLE)) as typeof start
}

export function compileQuick(cachedData?: Buffer): Script {
  const source = readFileSync(QUICK_BUNDLE, 'latin1')
  return new Script(`(function (exports, require, module, __filename, __dirname) { ${source}\n})`, {
    filename: QUICK_BUNDLE,
    cachedData,
  })
}

/** The export of the bundle. */
export function runQuick(script: Script): unknown {
  const loaded = { exports: {} }
  const wrapper = script.runInThisContext() as (...args: unknown[]) => void
  wrapper(loaded.exports, createRequire(QUICK_BUNDLE), loaded, QUICK_BUNDLE, __dirname)
  return loaded.exports
}
