/** Python source as a plain tree: made once per file from the parser's tree, which lives in WebAssembly memory and is slow to visit. */
import { Language, Parser, type Tree, type TreeCursor } from 'web-tree-sitter'

/** A node of the grammar `tree-sitter-python`; its types and field names are those of the grammar. */
export interface SyntaxNode {
  type: string
  /** The field of the parent that holds this node. */
  field: string | undefined
  children: readonly SyntaxNode[]
  /** Starts at 1. */
  line: number
  start: number
  end: number
  text: string
}

/** A file that was read. */
export interface SourceFile {
  path: string
  text: string
  root: SyntaxNode
  /** Lines, starting at 1, that the grammar cannot read. */
  brokenLines: readonly number[]
  /** The first line that only Python 2 understands. */
  python2Line: number | undefined
}

/** The two WebAssembly programs that reading Python requires, as bytes. */
export interface GrammarBytes {
  /** Bytes of `web-tree-sitter.wasm`, of the same version as the library. */
  engine: Uint8Array
  /** `tree-sitter-python.wasm`. */
  python: Uint8Array
}

export interface PythonParser {
  /** Undefined for a text that would take far more work than programs do. */
  parse(path: string, text: string): SourceFile | undefined
}

/** Loads the grammar. Throws what WebAssembly throws if the bytes are not a grammar. */
export async function loadPython({ engine, python }: GrammarBytes): Promise<PythonParser> {
  await Parser.init({ wasmBinary: engine })
  const parser = new Parser()
  parser.setLanguage(await Language.load(python))
  return { parse: (path, text) => readSource(parser, path, text) }
}

/** Statements that Python 3 does not have. */
const PYTHON_2_TYPES = new Set(['print_statement', 'exec_statement'])
/** The type of a node whose children are not read. */
const TOO_DEEP = 'too_deep'
/** Deeper expressions are generated data, and would exhaust the stack. */
const DEPTH_MAX = 400

/**
 * Steps of the parser, as it counts them, that a text may take: ten times as many for each character as any program of the standard
 * library. After errors the work may grow with the square of the length.
 */
const stepsMax = (text: string): number => 1_000 + text.length / 5

/**
 * Returns null for a text that takes too many steps. Throws a `RangeError` where nesting exhausts the stack of the parser, which is of no
 * use afterwards.
 */
function parsed(parser: Parser, path: string, text: string): Tree | null {
  let steps = 0
  const progressCallback = (): boolean => ++steps > stepsMax(text)
  try {
    const tree = parser.parse(text, null, { progressCallback })
    // It would go on with this text.
    if (tree === null) parser.reset()
    return tree
  } catch (error) {
    throw new RangeError(`${path} is nested too deeply for the parser`, { cause: error })
  }
}

function readSource(parser: Parser, path: string, text: string): SourceFile | undefined {
  const tree = parsed(parser, path, text)
  if (tree === null) return undefined
  const broken = new Set<number>()
  let python2Line: number | undefined
  const cursor = tree.walk()
  const visit = (depth: number): SyntaxNode => {
    const node = nodeAt(cursor, text)
    const children: SyntaxNode[] = []
    if (depth >= DEPTH_MAX && cursor.gotoFirstChild()) {
      cursor.gotoParent()
      return { ...node, type: TOO_DEEP, text: node.text, children }
    }
    if (node.type !== 'string_content' && cursor.gotoFirstChild()) {
      do {
        if (cursor.nodeType === 'ERROR' || cursor.nodeIsMissing) broken.add(cursor.startPosition.row + 1)
        if (cursor.nodeIsNamed || KEPT_TOKENS.has(cursor.nodeType)) children.push(visit(depth + 1))
      } while (cursor.gotoNextSibling())
      cursor.gotoParent()
    }
    if (PYTHON_2_TYPES.has(node.type)) python2Line ??= node.line
    return { ...node, children }
  }
  const root = visit(0)
  cursor.delete()
  tree.delete()
  return { path, text, root, brokenLines: [...broken], python2Line }
}

/** Operators, which the grammar does not name. */
const KEPT_TOKENS = new Set([
  '+',
  '-',
  '*',
  '/',
  '//',
  '%',
  '**',
  '@',
  '<<',
  '>>',
  '&',
  '|',
  '^',
  '<>',
  '==',
  '!=',
  '<',
  '<=',
  '>',
  '>=',
  'in',
  'not in',
  'is',
  'is not',
  'and',
  'or',
  'not',
  '+=',
  '-=',
  '*=',
  '/=',
  '//=',
  '%=',
])

function nodeAt(cursor: TreeCursor, text: string): Omit<SyntaxNode, 'children'> {
  const { nodeType, currentFieldName, startIndex, endIndex, startPosition } = cursor
  return {
    type: nodeType,
    field: currentFieldName ?? undefined,
    line: startPosition.row + 1,
    start: startIndex,
    end: endIndex,
    get text() {
      return text.slice(startIndex, endIndex)
    },
  }
}

export function childAt(node: SyntaxNode, field: string): SyntaxNode | undefined {
  return node.children.find((child) => child.field === field)
}

export function childrenAt(node: SyntaxNode, field: string): SyntaxNode[] {
  return node.children.filter((child) => child.field === field)
}

export function isToken(node: SyntaxNode): boolean {
  return KEPT_TOKENS.has(node.type)
}

/** Children without operators and comments. */
export function parts(node: SyntaxNode): SyntaxNode[] {
  return node.children.filter((child) => !isToken(child) && child.type !== 'comment')
}

/** Every node of a tree, parents first. */
export function* nodesOf(node: SyntaxNode): Generator<SyntaxNode> {
  yield node
  for (const child of node.children) yield* nodesOf(child)
}

/** The name of a parameter of a function; `undefined` for separators. */
export function parameterName(parameter: SyntaxNode): string | undefined {
  switch (parameter.type) {
    case 'identifier':
      return parameter.text
    case 'default_parameter':
    case 'typed_default_parameter':
      return childAt(parameter, 'name')?.text
    case 'typed_parameter':
      return parameterName(parameter.children[0]!)
    case 'list_splat_pattern':
    case 'dictionary_splat_pattern':
      return parts(parameter)[0]?.text
    default:
      return undefined
  }
}
