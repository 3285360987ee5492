import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import * as ts from 'typescript'
import { namesIn, pageOf, tableOf } from '../docs/tables'

const ROOT = join(__dirname, '..', '..')
const ENTRY = join(ROOT, 'client', 'index.ts')
const MARKS = ['public', 'experimental']

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.Node20,
  types: [],
  skipLibCheck: true,
}
/** Finds files of this project only: no test asks for a type of a dependency, and reading those takes most of the time. */
const host = ts.createCompilerHost(OPTIONS)
host.resolveModuleNameLiterals = (literals, from) =>
  literals.map(({ text }) =>
    text.startsWith('.')
      ? ts.resolveModuleName(text, from, OPTIONS, host, undefined, undefined, ts.ModuleKind.CommonJS)
      : { resolvedModule: undefined },
  )

/** The names that other packages can import, and what declares them; resolved, not checked. */
const program = ts.createProgram([ENTRY], OPTIONS, host)
const checker = program.getTypeChecker()
const EXPORTS = new Map(
  checker
    .getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(ENTRY)!)!)
    .map((symbol) => [symbol.name, origin(symbol)]),
)
const CRUCIBLE = EXPORTS.get('Crucible')!
const METHODS = [...CRUCIBLE.members!.values()].filter((each) => each.flags & ts.SymbolFlags.Method)

function origin(symbol: ts.Symbol): ts.Symbol {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
}

function marksOf(symbol: ts.Symbol): string[] {
  return symbol
    .getJsDocTags()
    .map(({ name }) => name)
    .filter((name) => MARKS.includes(name))
}

/** Types of this project that the signature of a function or method names. */
function typesNamedBy(symbol: ts.Symbol): ts.Symbol[] {
  const named: ts.Symbol[] = []
  const visit = (node: ts.Node): void => {
    const name = ts.isTypeReferenceNode(node) ? checker.getSymbolAtLocation(node.typeName) : undefined
    if (name !== undefined) named.push(origin(name))
    ts.forEachChild(node, visit)
  }
  for (const declaration of symbol.declarations ?? [])
    if (ts.isFunctionLike(declaration))
      [...declaration.parameters, ...(declaration.type ? [declaration.type] : [])].forEach(visit)
  return named.filter(({ declarations = [] }) =>
    declarations.some(
      (node) =>
        !ts.isTypeParameterDeclaration(node) && !node.getSourceFile().fileName.includes('/node_modules/'),
    ),
  )
}

describe('the public API', () => {
  it('marks every export as public or experimental, once', () => {
    expect(EXPORTS.size).toBeGreaterThan(40)
    const unmarked = [...EXPORTS].filter(([, symbol]) => marksOf(symbol).length !== 1).map(([name]) => name)
    expect(unmarked).toEqual([])
  })

  it.each(['Stable', 'Experimental'])('is listed in its reference: %s', (heading) => {
    const mark = heading === 'Stable' ? 'public' : heading.toLowerCase()
    const exported = [...EXPORTS].filter(([, symbol]) => marksOf(symbol)[0] === mark).map(([name]) => name)
    const methods = METHODS.filter((method) =>
      mark === 'public' ? marksOf(method).length === 0 : marksOf(method)[0] === mark,
    ).map(({ name }) => name)
    const rows = tableOf(pageOf('reference/typescript.md'), heading)
    const [calls, others] = [
      rows.filter(([what]) => what!.startsWith('methods of ')),
      rows.filter(([what]) => !what!.startsWith('methods of ')),
    ].map((some) => some.flatMap(([, names]) => namesIn(names!)))
    expect(others!.sort()).toEqual(exported.sort())
    expect(calls!.sort()).toEqual(methods.sort())
  })

  it('exports every type that its stable functions and methods name', () => {
    const exported = new Set(EXPORTS.values())
    const callables = [...EXPORTS.values(), ...METHODS].filter((each) => marksOf(each)[0] !== 'experimental')
    const missing = callables.flatMap((each) =>
      typesNamedBy(each)
        .filter((type) => !exported.has(type))
        .map((type) => `${each.name} names ${type.name}`),
    )
    expect(missing).toEqual([])
  })

  it('has no other entry than those that its reference names', () => {
    const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      exports: Record<string, unknown>
    }
    const entries = tableOf(pageOf('reference/typescript.md'), 'Entries').flatMap(([name]) => namesIn(name!))
    expect(entries).toEqual(Object.keys(exports).map((name) => name.replace(/^\./, 'crucible-ml')))
  })
})
