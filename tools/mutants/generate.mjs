// Generates mutants of source files: Stryker's operators, without mutants that the compiler refuses.
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Instrumenter } from '@stryker-mutator/instrumenter'
import ts from 'typescript'
import { ROOT } from '../content.mjs'

/**
 * String mutants are left out: the compiler refuses an empty code, name or kind, and only tests of wording could catch an empty message.
 */
const LEFT_OUT = ['StringLiteral']

const silent = new Proxy(
  {},
  { get: (_, name) => (String(name).startsWith('is') ? () => false : () => undefined) },
)

/** Returns every mutant of a file, in order: its position, its replacement, and the file's whole text with it. */
export async function mutantsOf(file) {
  const content = readFileSync(join(ROOT, file), 'utf8')
  const { mutants } = await new Instrumenter(silent).instrument([{ name: file, content, mutate: true }], {
    excludedMutations: LEFT_OUT,
    ignorers: [],
    plugins: null,
  })
  const startOfLine = lineStarts(content)
  const chosen = mutants.filter(({ status }) => status !== 'Ignored')
  return chosen.map(({ mutatorName, replacement, location }) => {
    const offset = ({ line, column }) => startOfLine[line] + column
    const [from, to] = [offset(location.start), offset(location.end)]
    return {
      file,
      line: location.start.line + 1,
      operator: mutatorName,
      before: content.slice(from, to),
      after: replacement,
      original: content,
      text: content.slice(0, from) + replacement + content.slice(to),
    }
  })
}

function lineStarts(text) {
  const starts = [0]
  for (let index = text.indexOf('\n'); index >= 0; index = text.indexOf('\n', index + 1))
    starts.push(index + 1)
  return starts
}

/** Returns a check of whether a mutant still compiles: `npm run types` catches the others. */
export function createTypeCheck(project) {
  const config = ts.parseJsonConfigFileContent(
    ts.readConfigFile(join(ROOT, project), ts.sys.readFile).config,
    ts.sys,
    ROOT,
  )
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
  return ({ file, text, original }) => {
    const path = join(ROOT, file)
    const before = declarationsOf(path)
    changed.set(path, { text, version: ++version })
    const compiles =
      !hasErrors(path) &&
      (declarationsOf(path) === before || !importers(path).some((other) => hasErrors(other)))
    changed.set(path, { text: original, version: ++version })
    return compiles
  }
}
