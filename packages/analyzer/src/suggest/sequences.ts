/** Finds sequences that begin outside the loop and continue inside. No saved state contains their position. */
import { childAt, nodesOf, parts, type SourceFile, type SyntaxNode } from '../syntax'
import type { Program } from './checks'
import { identifiersIn } from './flow'
import { isInside } from './loop'
import { refuse } from './refusal'

/** Refuses a program whose loop takes from such a sequence. A name that the loop has is enough, so more is refused than must be. */
export function checkSequences({ facts: { run }, training, region }: Program): void {
  const { sources } = run.project
  const generators = new Set(sources.flatMap(({ root }) => [...generatorsIn(root)]))
  const read = new Set(namesIn([training.body, ...region.map(({ node }) => node)]))
  const isAnew = (node: SyntaxNode, source: SourceFile): boolean =>
    (source === training.source && isInside(node, training.body)) ||
    region.some((each) => each.source === source && isInside(node, each.node))
  for (const source of sources)
    for (const node of nodesOf(source.root)) {
      const begun = begunBy(node, { training, read })
      if (begun.some((value) => isSequence(value, generators)) && !isAnew(node, source))
        refuse(source.path, node, 'begins a sequence that the loop continues, and its place cannot be saved')
    }
}

const namesIn = (nodes: readonly SyntaxNode[]): string[] =>
  nodes.flatMap(identifiersIn).map(({ text }) => text)

/** Returns the values that a node assigns to names that the loop reads, or passes to the function around the loop. */
function begunBy(
  node: SyntaxNode,
  { training, read }: Pick<Program, 'training'> & { read: ReadonlySet<string> },
): readonly SyntaxNode[] {
  const isRead = (target: SyntaxNode | undefined): boolean => {
    const name = target === undefined ? undefined : identifiersIn(target).at(-1)
    return name !== undefined && read.has(name.text)
  }
  if (node.type === 'assignment') {
    const right = childAt(node, 'right')
    return right !== undefined && isRead(childAt(node, 'left')) ? [right] : []
  }
  if (node.type === 'as_pattern') {
    const [value, alias] = parts(node)
    return isRead(alias) ? [value!] : []
  }
  const owner = childAt(training.owner, 'name')
  return node.type === 'call' && owner !== undefined && calledBy(node).at(-1) === owner.text
    ? parts(childAt(node, 'arguments')!).map((part) => childAt(part, 'value') ?? part)
    : []
}

/** `itertools.islice(...)` as its names. */
const calledBy = (call: SyntaxNode): string[] => namesIn([childAt(call, 'function')!])

const BUILT_IN = new Set(['iter', 'zip', 'enumerate', 'map', 'filter', 'reversed'])
const ITERTOOLS = new Set(['islice', 'cycle', 'chain', 'count', 'starmap', 'takewhile', 'from_iterable'])

function isSequence(value: SyntaxNode, generators: ReadonlySet<string>): boolean {
  if (value.type === 'generator_expression') return true
  if (value.type !== 'call') return false
  const names = calledBy(value)
  const called = names.at(-1) ?? ''
  if (names.length === 1 && called === 'open') return isOpenedToRead(value)
  if (names[0] === 'csv') return called === 'reader' || called === 'DictReader'
  return (names.length === 1 && BUILT_IN.has(called)) || ITERTOOLS.has(called) || generators.has(called)
}

function isOpenedToRead(call: SyntaxNode): boolean {
  const [, mode] = parts(childAt(call, 'arguments')!)
  return mode === undefined || ![...mode.text].some((letter) => 'wax'.includes(letter))
}

/** Yields the names of generator functions, except context managers. */
function* generatorsIn(root: SyntaxNode): Generator<string> {
  const managers = new Set<SyntaxNode>()
  for (const node of nodesOf(root)) {
    const definition = childAt(node, 'definition')
    if (definition !== undefined && node.children.some(isOfManager)) managers.add(definition)
    const own = node.type === 'function_definition' ? childAt(node, 'name') : undefined
    if (own === undefined || managers.has(node)) continue
    if ([...nodesOf(childAt(node, 'body')!)].some(({ type }) => type === 'yield')) yield own.text
  }
}

const isOfManager = ({ type, text }: SyntaxNode): boolean =>
  type === 'decorator' && text.includes('contextmanager')
