/** Writes Python in the style of the file that it is added to: its indentation, quotes, line ends, imports and free names. */
import { childAt, nodesOf, type SourceFile, type SyntaxNode } from '../syntax'
import type { Edit } from './diff'
import { identifiersIn } from './flow'

/** Code to add: lines with their depth of indentation, counted from where they are put. Quotes are written as `"`. */
export type Line = readonly [depth: number, text: string]

/** Modules of the standard library, whose imports precede those of other packages. */
const STANDARD = new Set([
  'argparse',
  'collections',
  'copy',
  'csv',
  'dataclasses',
  'datetime',
  'functools',
  'glob',
  'itertools',
  'json',
  'logging',
  'math',
  'os',
  'pathlib',
  'pickle',
  'random',
  'shutil',
  'sys',
  'time',
  'typing',
  'warnings',
])

export class Writing {
  readonly edits: Edit[] = []
  readonly #imports = new Map<string, string>()
  readonly #taken: Set<string>
  readonly #newline: string
  readonly #unit: string
  readonly #quote: string

  constructor(readonly source: SourceFile) {
    this.#taken = new Set(namesIn(source.root))
    this.#newline = source.text.includes('\r\n') ? '\r\n' : '\n'
    this.#unit = unitOf(source)
    this.#quote = quoteOf(source)
  }

  /** A name that the file does not use yet. */
  free(name: string): string {
    let result = name
    while (this.#taken.has(result)) result = `resume_${result}`
    this.#taken.add(result)
    return result
  }

  /** The name by which the file can call a module, which it imports if it does not yet. */
  module(name: string, alias = name): string {
    const before = this.#imports.get(name) ?? importedAs(this.source, name)
    if (before !== undefined) return before
    const chosen = this.free(alias)
    this.#imports.set(name, chosen)
    return chosen
  }

  /** Returns the indentation of a statement; `undefined` if another statement precedes it on its line. */
  indentationOf(node: SyntaxNode): string | undefined {
    const before = this.source.text.slice(this.#lineStart(node.start), node.start)
    return before.trim() === '' ? before : undefined
  }

  /** Puts a class before a statement of the file, with two blank lines around it. */
  classBefore(node: SyntaxNode, lines: readonly Line[]): void {
    const { children } = this.source.root
    const first = this.#withComments(node, children)
    const before = this.source.text.slice(0, this.#lineStart(first.start)).replaceAll('\r', '')
    const blanks = (count: number): Line[] => Array.from({ length: count }, () => [0, ''])
    const missing = before.endsWith('\n\n\n') || before === '' ? 0 : before.endsWith('\n\n') ? 1 : 2
    this.before(node, children, [...blanks(missing), ...lines, ...blanks(2)])
  }

  /** Puts lines before a statement, and before the comment above it. */
  before(node: SyntaxNode, siblings: readonly SyntaxNode[], lines: readonly Line[]): void {
    const first = this.#withComments(node, siblings)
    this.#insert(this.#lineStart(first.start), this.#text(lines, this.indentationOf(node)!))
  }

  /** A statement, or the first of the comments right above it. */
  #withComments(node: SyntaxNode, siblings: readonly SyntaxNode[]): SyntaxNode {
    let first = node
    for (const sibling of [...siblings].reverse())
      if (
        sibling.type === 'comment' &&
        sibling.line === first.line - 1 &&
        this.indentationOf(sibling) !== undefined
      )
        first = sibling
    return first
  }

  /** Puts lines after the last statement of a block. */
  after(node: SyntaxNode, lines: readonly Line[]): void {
    const text = this.#text(lines, this.#lineIndentation(node))
    const end = this.source.text.indexOf('\n', node.end)
    if (end !== -1) this.#insert(end + 1, text)
    else this.#insert(this.source.text.length, this.#newline + text.slice(0, -this.#newline.length))
  }

  replace(node: { start: number; end: number }, text: string): void {
    this.edits.push({ start: node.start, length: node.end - node.start, text: this.inStyle(text) })
  }

  insertAt(offset: number, text: string): void {
    this.#insert(offset, this.inStyle(text))
  }

  /** The edits with those that import. */
  finish(): readonly Edit[] {
    const modules = [...this.#imports].sort(([one], [other]) => (one < other ? -1 : 1))
    for (const [name, alias] of modules) this.#import(name, alias)
    return this.edits
  }

  /** Returns a literal in braces that replaces a node, with each item on a separate line. */
  spread(node: SyntaxNode, items: readonly string[]): string {
    const indentation = this.#lineIndentation(node)
    const inner = items.map((item) => `${indentation}${this.#unit}${item},${this.#newline}`)
    return `{${this.#newline}${inner.join('')}${indentation}}`
  }

  /** Returns a text with the quotes of the file, unless the text contains such quotes. */
  inStyle(text: string): string {
    return this.#quote === '"' || text.includes("'") ? text : text.replaceAll('"', this.#quote)
  }

  #text(lines: readonly Line[], indentation: string): string {
    return lines
      .map(
        ([depth, text]) => `${indentation}${this.#unit.repeat(depth)}${this.inStyle(text)}${this.#newline}`,
      )
      .join('')
  }

  #insert(start: number, text: string): void {
    this.edits.push({ start, length: 0, text })
  }

  /** Returns the indentation of the line that contains a node. */
  #lineIndentation({ start }: SyntaxNode): string {
    const line = this.source.text.slice(this.#lineStart(start), start)
    return line.slice(0, line.length - line.trimStart().length)
  }

  #lineStart(offset: number): number {
    const start = offset === 0 ? 0 : this.source.text.lastIndexOf('\n', offset - 1) + 1
    return start === 0 && this.source.text.startsWith(BYTE_ORDER_MARK) ? 1 : start
  }

  #import(name: string, alias: string): void {
    const statement = alias === name ? `import ${name}` : `import ${name} as ${alias}`
    const groups = importGroups(this.source.root)
    const isStandard = STANDARD.has(name)
    const group = groups.find((each) => each.some((node) => STANDARD.has(rootOf(node)) === isStandard))
    const [first] = groups.flat()
    if (group === undefined) {
      if (first === undefined) return this.#firstImport(statement)
      // A group of its own.
      const blank = this.#newline
      if (isStandard)
        return this.#insert(
          this.#lineStart(first.start),
          `${statement}${this.#newline}${this.#isOnly(name) ? blank : ''}`,
        )
      const last = groups[0]!.at(-1)!
      return this.#insert(this.#lineEnd(last), `${blank}${statement}${this.#newline}`)
    }
    const own = group.filter((node) => STANDARD.has(rootOf(node)) === isStandard)
    const plain = own.filter(({ type }) => type === 'import_statement')
    const next = plain.find((node) => rootOf(node) > name)
    if (next !== undefined) return this.#insert(this.#lineStart(next.start), `${statement}${this.#newline}`)
    const last = plain.at(-1)
    if (last === undefined)
      return this.#insert(this.#lineStart(own[0]!.start), `${statement}${this.#newline}`)
    this.#insert(this.#lineEnd(last), `${statement}${this.#newline}`)
  }

  /** Whether this is the last import to add to the standard ones. */
  #isOnly(name: string): boolean {
    const standard = [...this.#imports.keys()].filter((each) => STANDARD.has(each)).sort()
    return standard.at(-1) === name
  }

  #firstImport(statement: string): void {
    const first = this.source.root.children.find((node) => !isHead(node))
    const at = first === undefined ? this.source.text.length : this.#lineStart(first.start)
    this.#insert(at, `${statement}${this.#newline}`)
  }

  #lineEnd(node: SyntaxNode): number {
    const end = this.source.text.indexOf('\n', node.end)
    return end === -1 ? this.source.text.length : end + 1
  }
}

/** Names that a file uses, other than those of attributes, arguments and packages. */
function namesIn(node: SyntaxNode): string[] {
  if (node.type === 'identifier') return [node.text]
  const isName = ({ field }: SyntaxNode): boolean =>
    !(node.type === 'attribute' && field === 'attribute') &&
    !(node.type === 'keyword_argument' && field === 'name') &&
    !(node.type === 'import_from_statement' && field === 'module_name')
  return node.children.filter(isName).flatMap(namesIn)
}

const BYTE_ORDER_MARK = '\uFEFF'

const isImport = ({ type }: SyntaxNode): boolean =>
  type === 'import_statement' || type === 'import_from_statement'

/** Comments, the docstring and `__future__` imports, which precede all other code. */
const isHead = (node: SyntaxNode): boolean =>
  node.type === 'comment' || node.type === 'future_import_statement' || isDocstring(node)
const isDocstring = (node: SyntaxNode): boolean =>
  node.type === 'expression_statement' && node.children[0]?.type === 'string'

/** Imports at the top of a file, by groups without a blank line. */
function importGroups(root: SyntaxNode): SyntaxNode[][] {
  const groups: SyntaxNode[][] = []
  let before: SyntaxNode | undefined
  for (const node of root.children) {
    if (isImport(node)) {
      const isNext = before !== undefined && isImport(before) && lastLine(before) === node.line - 1
      if (isNext) groups.at(-1)!.push(node)
      else groups.push([node])
    } else if (!isHead(node)) break
    before = node
  }
  return groups
}

const lastLine = (node: SyntaxNode): number => node.line + node.text.split('\n').length - 1

/** The package of an import. */
function rootOf(node: SyntaxNode): string {
  const name = childAt(node, 'module_name') ?? childAt(node, 'name')
  return (name === undefined ? undefined : identifiersIn(name)[0])?.text ?? ''
}

/** How the top of a file imports a module, if it does. */
function importedAs({ root }: SourceFile, module: string): string | undefined {
  for (const node of root.children) {
    if (node.type !== 'import_statement') continue
    for (const name of node.children) {
      const alias = childAt(name, 'alias')?.text
      const whole = childAt(name, 'name')?.text ?? name.text
      if (whole === module && (alias !== undefined || name.type === 'dotted_name')) return alias ?? module
    }
  }
  return undefined
}

/** One step of indentation. */
function unitOf({ root, text }: SourceFile): string {
  for (const node of nodesOf(root)) {
    const first = node.type === 'block' ? node.children[0] : undefined
    if (first === undefined) continue
    const before = text.slice(text.lastIndexOf('\n', first.start - 1) + 1, first.start)
    if (before.trim() === '' && before !== '') return before
  }
  return '    '
}

/** The quotes that most strings of the file have. */
function quoteOf({ root }: SourceFile): string {
  let [single, double] = [0, 0]
  for (const { type, text } of nodesOf(root)) {
    if (type !== 'string_start' || text.endsWith('"""') || text.endsWith("'''")) continue
    if (text.endsWith("'")) single += 1
    else double += 1
  }
  return single > double ? "'" : '"'
}
