// ESLint over the whole tree, for changed files only: those whose content, or that of a file which they import directly or not, is not as when
// they passed. Rules with types read no others, apart from packages, settings and global declarations.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { ESLint } from 'eslint'
import ts from 'typescript'
import { CACHE, filesOf, hashOf, ROOT } from './content.mjs'

const PASSED = join(CACHE, 'lint.json')
const CODE = /\.[cm]?[jt]s$/
/** Files that affect every result, and those that the settings of ESLint load. */
const SETTINGS = [
  ...['tools/lint.mjs', 'tools/kept-promises.js', 'tools/import-law.json'],
  ...['package-lock.json', 'tsconfig.json', 'eslint.config.mjs'],
]
const GLOBALS = /\.d\.[cm]?ts$|^\s*declare (?:global|module)\b/m

// This program lints once and ends; typescript-eslint would otherwise watch the files.
process.env.TSESTREE_SINGLE_RUN = 'true'

const eslint = new ESLint({ cwd: ROOT })
const { options } = ts.parseJsonConfigFileContent(
  ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile).config,
  ts.sys,
  ROOT,
)
const resolutions = ts.createModuleResolutionCache(ROOT, (name) => name, options)

/** The files of this tree that a file imports. */
function importsOf(file, text) {
  const path = join(ROOT, file)
  const mode = ts.getImpliedNodeFormatForFile(path, resolutions.getPackageJsonInfoCache(), ts.sys, options)
  return ts.preProcessFile(text, true, true).importedFiles.flatMap(({ fileName }) => {
    const { resolvedModule } = ts.resolveModuleName(
      ...[fileName, path, options, ts.sys, resolutions, undefined, mode],
    )
    const found = resolvedModule && relative(ROOT, resolvedModule.resolvedFileName)
    return found === undefined || found.startsWith('..') || found.includes('node_modules') ? [] : [found]
  })
}

/** Returns for each file the hash of everything that its result depends on. */
function hashesOf(files) {
  const { type, imports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const settings = JSON.stringify([hashOf(SETTINGS), type, imports])
  const read = new Map()
  const visit = (file) => {
    if (read.has(file)) return
    const text = readFileSync(join(ROOT, file), 'utf8')
    const entry = { hash: createHash('sha256').update(text).digest('hex'), imports: [], text }
    read.set(file, entry)
    if (!CODE.test(file)) return
    entry.imports = importsOf(file, text)
    entry.imports.forEach(visit)
  }
  files.forEach(visit)
  const everywhere = [...read].filter(([file, { text }]) => GLOBALS.test(file) || GLOBALS.test(text))
  const base = [settings, process.version, ...everywhere.map(([, { hash }]) => hash)].join(' ')
  return new Map(
    files.map((file) => {
      const reached = new Set([file])
      for (const each of reached) read.get(each).imports.forEach((imported) => reached.add(imported))
      const parts = [...reached].sort().map((each) => `${each} ${read.get(each).hash}`)
      return [
        file,
        createHash('sha256')
          .update([base, ...parts].join('\n'))
          .digest('hex'),
      ]
    }),
  )
}

function readPassed() {
  try {
    return JSON.parse(readFileSync(PASSED, 'utf8'))
  } catch {
    return {}
  }
}

async function lintable() {
  const tree = filesOf(
    ...ts.sys.getDirectories(ROOT).filter((name) => !/^\.|^(?:dist|node_modules)$/.test(name)),
  )
  const top = ts.sys.readDirectory(ROOT, undefined, undefined, ['*'], 1).map((path) => relative(ROOT, path))
  const files = [...top, ...tree, ...filesOf('docs/.vitepress')].filter((file) => CODE.test(file))
  const ignored = await Promise.all(files.map((file) => eslint.isPathIgnored(join(ROOT, file))))
  return files.filter((_, index) => !ignored[index])
}

const hashes = hashesOf(await lintable())
const passed = readPassed()
const changed = [...hashes].flatMap(([file, hash]) => (passed[file] === hash ? [] : [file]))
const results = changed.length === 0 ? [] : await eslint.lintFiles(changed)
const faulty = new Set(
  results.filter(({ messages }) => messages.length > 0).map(({ filePath }) => relative(ROOT, filePath)),
)
mkdirSync(dirname(PASSED), { recursive: true })
writeFileSync(PASSED, JSON.stringify(Object.fromEntries([...hashes].filter(([file]) => !faulty.has(file)))))
const formatter = await eslint.loadFormatter()
process.stdout.write(await formatter.format(results))
if (results.some(({ errorCount }) => errorCount > 0)) process.exitCode = 1
