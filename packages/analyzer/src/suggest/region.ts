/** The functions of the project that run inside the training loop, found by their names: more of them than really run. */
import type { Interpreter } from '../interpreter'
import { childAt, nodesOf, type SourceFile, type SyntaxNode } from '../syntax'
import { identifiersIn } from './flow'
import { isInside, type TrainingLoop } from './loop'

export interface ProjectFunction {
  node: SyntaxNode
  source: SourceFile
  /** The class of a method. */
  owner: SyntaxNode | undefined
}

/** Methods that Python or a library calls other than by name. */
const isImplicit = (name: string): boolean =>
  (name.startsWith('__') && name !== '__init__') || name === 'forward' || name === 'call'

export function functionsInLoop(run: Interpreter, { body, source, owner }: TrainingLoop): ProjectFunction[] {
  const all = run.project.sources.flatMap((each) => functionsOf(each.root, each))
  const around = all.filter((each) => each.source === source && isInside(owner, each.node))
  const reached = new Set<ProjectFunction>()
  const names = new Set(identifiersIn(body).map(({ text }) => text))
  const others = all.filter((each) => !around.includes(each))
  const isReached = ({ node, owner: of }: ProjectFunction): boolean => {
    const name = childAt(node, 'name')!.text
    const className = of === undefined ? undefined : childAt(of, 'name')!.text
    if (name === '__init__') return className !== undefined && names.has(className)
    return names.has(name) || isImplicit(name)
  }
  for (let size = -1; size < reached.size;) {
    size = reached.size
    for (const each of others) {
      if (reached.has(each) || !isReached(each)) continue
      reached.add(each)
      for (const { text } of identifiersIn(each.node)) names.add(text)
    }
  }
  return [...reached]
}

/** All functions in a tree, without lambdas. */
export function functionsOf(node: SyntaxNode, source: SourceFile, owner?: SyntaxNode): ProjectFunction[] {
  const found: ProjectFunction[] = node.type === 'function_definition' ? [{ node, source, owner }] : []
  const inside =
    node.type === 'class_definition' ? node : node.type === 'function_definition' ? undefined : owner
  return [...found, ...node.children.flatMap((child) => functionsOf(child, source, inside))]
}

/** Returns the targets of an assignment or similar statement, except plain names. */
export function changedParts(node: SyntaxNode): SyntaxNode[] {
  const found: SyntaxNode[] = []
  for (const each of nodesOf(node)) {
    if (each.type === 'assignment' || each.type === 'augmented_assignment' || each.type === 'for_statement') {
      const left = childAt(each, 'left')
      if (left !== undefined) found.push(...accessesIn(left))
    }
    if (each.type === 'delete_statement') found.push(...each.children.flatMap(accessesIn))
  }
  return found
}

function accessesIn(target: SyntaxNode): SyntaxNode[] {
  if (target.type === 'attribute' || target.type === 'subscript') return [target]
  return target.children.flatMap(accessesIn)
}

/** The first name of `self.model.x[0]`. */
export function rootName(node: SyntaxNode): string | undefined {
  if (node.type === 'identifier') return node.text
  const inner = childAt(node, 'object') ?? childAt(node, 'value') ?? childAt(node, 'function')
  return inner === undefined ? undefined : rootName(inner)
}
