// Says which mutants compile: `npm run types` catches the others. Answers are kept until a source file changes.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { CACHE, hashOf, ROOT } from '../content.mjs'

/** The rooms of the small project, which is checked faster, and knows only these. */
const PURE = ['planner', 'core', 'workflows']
const projectOf = (file) => (PURE.includes(file.split('/')[0]) ? 'tsconfig.pure.json' : 'tsconfig.json')
const KEPT = join(CACHE, 'mutants-compile.json')

/** Returns the mutants that compile. */
export async function compiling(mutants) {
  const sources = new Map(
    [...new Set(mutants.map(({ file }) => projectOf(file)))].map((project) => [
      project,
      // Tests are excluded, because no code depends on them.
      hashOf(filesOfProject(project).filter((file) => !file.startsWith('test/'))),
    ]),
  )
  const keyOf = ({ file, text }) =>
    createHash('sha256')
      .update(sources.get(projectOf(file)))
      .update(file)
      .update(text)
      .digest('hex')
  const known = existsSync(KEPT) ? JSON.parse(readFileSync(KEPT, 'utf8')) : {}
  const unknown = mutants.filter((mutant) => known[keyOf(mutant)] === undefined)
  const workers = Math.min(availableParallelism(), Math.ceil(unknown.length / 50))
  const shares = Array.from({ length: workers }, () => [])
  // Mutants of a file stay together, for the check of the next is faster then.
  for (const file of new Set(unknown.map((mutant) => mutant.file)))
    shares
      .sort((one, other) => one.length - other.length)[0]
      .push(...unknown.filter((mutant) => mutant.file === file))
  await Promise.all(
    shares.map(async (share) => {
      const answers = await inWorker(share.map(({ file, text, original }) => ({ file, text, original })))
      share.forEach((mutant, index) => (known[keyOf(mutant)] = answers[index]))
    }),
  )
  mkdirSync(dirname(KEPT), { recursive: true })
  if (unknown.length > 0) writeFileSync(KEPT, JSON.stringify(known))
  return mutants.filter((mutant) => known[keyOf(mutant)])
}

const inWorker = (share) =>
  new Promise((resolve, reject) => {
    const worker = new Worker(fileURLToPath(import.meta.url), { workerData: share })
    worker.once('message', resolve).once('error', reject)
  })

const configOf = (project) =>
  ts.parseJsonConfigFileContent(ts.readConfigFile(join(ROOT, project), ts.sys.readFile).config, ts.sys, ROOT)
const filesOfProject = (project) =>
  configOf(project)
    .fileNames.map((path) => path.slice(ROOT.length + 1))
    .sort()

/** Returns a check of whether a mutant still compiles. */
function createTypeCheck(project) {
  const config = configOf(project)
  const changed = new Map()
  let version = 0
  const service = ts.createLanguageService({
    getScriptFileNames: () => config.fileNames,
    getScriptVersion: (path) => String(changed.get(path)?.version ?? 0),
    getScriptSnapshot: (path) => {
      const text = changed.get(path)?.text ?? ts.sys.readFile(path)
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text)
    },
    getCurrentDirectory: () => ROOT,
    getCompilationSettings: () => config.options,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
  })
  const importers = (path) =>
    config.fileNames.filter((other) => {
      const name = `/${path.slice(dirname(path).length + 1).replace(/\.ts$/, '')}'`
      return other === path || readFileSync(other, 'utf8').includes(name)
    })
  const hasErrors = (path) =>
    service.getSyntacticDiagnostics(path).length > 0 || service.getSemanticDiagnostics(path).length > 0
  /** The file as its importers see it. */
  const declarationsOf = (path) =>
    service
      .getEmitOutput(path, true, true)
      .outputFiles.map(({ text }) => text)
      .join('')
  const declared = new Map()
  return ({ file, text, original }) => {
    const path = join(ROOT, file)
    if (!declared.has(path)) declared.set(path, declarationsOf(path))
    changed.set(path, { text, version: ++version })
    const compiles =
      !hasErrors(path) &&
      (declarationsOf(path) === declared.get(path) || !importers(path).some((other) => hasErrors(other)))
    changed.set(path, { text: original, version: ++version })
    return compiles
  }
}

if (!isMainThread) {
  const checks = new Map()
  const answers = workerData.map((mutant) => {
    const project = projectOf(mutant.file)
    if (!checks.has(project)) checks.set(project, createTypeCheck(project))
    return checks.get(project)(mutant)
  })
  parentPort.postMessage(answers)
}
