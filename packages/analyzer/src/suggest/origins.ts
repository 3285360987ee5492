/** Finds where an object in a function comes from, by its names. */
import { childAt, nodesOf, parts, type SourceFile, type SyntaxNode } from '../syntax'
import { identifiersIn } from './flow'

/** Maximum number of names to follow; longer chains give no more information. */
const DEPTH_MAX = 4

/** The expressions that an object is part of: attributes of `self`, and names that the function does not bind itself. */
export function originsOf(owner: SyntaxNode, node: SyntaxNode, depth = 0): SyntaxNode[] {
  if (depth > DEPTH_MAX) return [node]
  const into = (each: SyntaxNode): SyntaxNode[] => originsOf(owner, each, depth + 1)
  switch (node.type) {
    case 'identifier': {
      const values = valuesOf(owner, node.text)
      return values.length === 0 ? [node] : values.flatMap(into)
    }
    case 'attribute':
      return childAt(node, 'object')!.text === 'self' ? [node] : into(childAt(node, 'object')!)
    case 'subscript':
      return into(childAt(node, 'value')!)
    case 'call':
      return partOfCall(node).flatMap(into)
    case 'parenthesized_expression':
    case 'conditional_expression':
    case 'tuple':
    case 'pattern_list':
      return parts(node).flatMap(into)
    default:
      return []
  }
}

/** Returns the values that a call passes on, in whole or in part; other calls create new objects. */
function partOfCall(call: SyntaxNode): readonly SyntaxNode[] {
  const called = childAt(call, 'function')!
  const object = childAt(called, 'object')
  if (object !== undefined) return PASSING.has(childAt(called, 'attribute')!.text) ? [object] : []
  return ['zip', 'enumerate', 'reversed', 'iter', 'list', 'sorted'].includes(called.text)
    ? parts(childAt(call, 'arguments')!)
    : []
}

const PASSING = new Set([
  'items',
  'values',
  'get',
  'setdefault',
  'parameters',
  'named_parameters',
  'buffers',
  'named_buffers',
  'modules',
  'children',
  'state_dict',
  'detach',
  'view',
])

/** Returns the values that a function assigns to a name. */
export function valuesOf(owner: SyntaxNode, name: string): SyntaxNode[] {
  return [...nodesOf(owner)].flatMap((node) => {
    const left = childAt(node, 'left')
    const isBound =
      (node.type === 'assignment' || node.type === 'for_statement' || node.type === 'for_in_clause') &&
      left !== undefined &&
      left.type !== 'attribute' &&
      left.type !== 'subscript' &&
      identifiersIn(left).some(({ text }) => text === name)
    const right = childAt(node, 'right')
    return isBound && right !== undefined ? [right] : []
  })
}

/** A module, whose functions may be called like methods: `np.add(a, b)`. */
export const isModule = ({ root }: SourceFile, name: string): boolean =>
  [...nodesOf(root)].some(
    ({ type, children }) =>
      (type === 'import_statement' || type === 'import_from_statement') &&
      children.some(
        (each) => each.field === 'name' && (childAt(each, 'alias') ?? each.children[0] ?? each).text === name,
      ),
  )
