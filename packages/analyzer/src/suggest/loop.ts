/** The loop that trains: where it begins and ends, and what counts its rounds. */
import type { Facts, TrainingCall } from '../facts'
import { childAt, parts, type SourceFile, type SyntaxNode } from '../syntax'
import type { Loop } from '../flow'
import { flowOf } from './flow'
import { refuse, refuseCall } from './refusal'

/** `for epoch in range(first, end)` */
export interface Counter {
  variable: string
  /** The call of `range`. */
  range: SyntaxNode
  /** The first argument of two, as it is written; `undefined` for one argument. */
  first: SyntaxNode | undefined
}

export interface TrainingLoop {
  loop: Loop
  source: SourceFile
  /** The function around it, or the file. */
  owner: SyntaxNode
  /** The blocks around it, innermost first. */
  blocks: readonly SyntaxNode[]
  body: SyntaxNode
  /** Of a `for` loop. */
  counter: Counter | undefined
  /** Whether a round is an epoch: a pass over the data, rather than one batch. */
  isEpoch: boolean
}

/** The one loop in which everything trains. Refuses what has several, or none that can be entered in the middle. */
export function trainingLoop({ run, training, events }: Facts): TrainingLoop {
  const outermost = new Map<Loop, TrainingCall>()
  for (const call of training) {
    const [loop] = call.event.loops
    if (loop === undefined) refuseCall(call.event, 'trains outside a loop, so there are no rounds to count')
    if (!outermost.has(loop)) outermost.set(loop, call)
  }
  const [loop, ...others] = outermost.keys()
  const [another] = others
  if (another !== undefined)
    refuse(another.file, another, 'begins another loop that trains; only a program with one is certain')
  const source = run.project.source(loop!.file)!
  if (source.path.endsWith('.ipynb')) refuse(source.path, loop!, 'is a notebook, which a diff cannot change')
  const made = events.find(({ name, loops }) => name.startsWith('torch.optim.') && loops.includes(loop!))
  if (
    made !== undefined &&
    !made.name.includes('lr_scheduler') &&
    made.method !== 'step' &&
    isClass(made.method)
  )
    refuse(
      loop!.file,
      loop!,
      'begins a loop that trains a new model in each round, as a cross-validation does',
    )
  return describe(loop!, source, training)
}

const isClass = (name: string): boolean => name.charAt(0) !== name.charAt(0).toLowerCase()

function describe(loop: Loop, source: SourceFile, training: readonly TrainingCall[]): TrainingLoop {
  const { node } = loop
  const around = [...pathTo(source.root, node)].reverse()
  const owner = around.find(({ type }) => type === 'function_definition') ?? source.root
  const blocks = around.slice(0, around.indexOf(owner)).filter(({ type }) => type === 'block')
  const body = childAt(node, 'body')
  if (
    body?.type !== 'block' ||
    body.line === node.line ||
    body.children.every(({ type }) => type === 'comment')
  )
    refuse(source.path, node, 'begins a loop that is not written as a block of lines')
  if (node.children.some(({ type }) => type === 'async'))
    refuse(source.path, node, 'begins an asynchronous loop')
  const earlier = loop.iterated.origins.find(
    ({ call }) =>
      STATE_FILES.some((library) => call.name.startsWith(library)) && call.method.includes('load'),
  )
  if (earlier !== undefined)
    refuse(
      source.path,
      node,
      `begins where ${earlier.call.file.path}:${earlier.call.node.line} sets, so the program already resumes in its own way`,
    )
  const last = parts(body).at(-1)!
  if (LEAVING.has(last.type)) refuse(source.path, last, 'leaves the loop at the end of each round')
  const counter = node.type === 'for_statement' ? counterOf(node, source) : undefined
  if (counter !== undefined && assigns(body, counter.variable))
    refuse(source.path, node, `counts with ${counter.variable}, which the loop also assigns`)
  return {
    loop,
    source,
    owner,
    body,
    counter,
    blocks: owner === source.root ? [...blocks, source.root] : blocks,
    isEpoch: isEpoch(loop, training),
  }
}

/** Libraries whose files hold the state of a run, rather than settings. */
const STATE_FILES = ['torch.', 'pickle.', 'joblib.', 'numpy.', 'cloudpickle.', 'flax.', 'safetensors.']

const LEAVING = new Set(['return_statement', 'raise_statement', 'break_statement', 'continue_statement'])

/** The nodes from the top to a node, without it. */
function pathTo(root: SyntaxNode, node: SyntaxNode): SyntaxNode[] {
  const path: SyntaxNode[] = []
  let at = root
  while (at !== node) {
    path.push(at)
    const next = at.children.find(
      (child) => child === node || (child.start <= node.start && child.end >= node.end),
    )
    if (next === undefined) return path
    at = next
  }
  return path
}

function counterOf(node: SyntaxNode, source: SourceFile): Counter {
  const left = childAt(node, 'left')!
  const range = rangeIn(childAt(node, 'right')!)
  if (left.type !== 'identifier' || range === undefined)
    refuse(source.path, node, 'begins a loop over data, which cannot resume in the middle of a pass')
  const given = parts(childAt(range, 'arguments')!)
  const isPlain = given.every(({ type }) => type !== 'keyword_argument' && !type.endsWith('_splat'))
  const positional = given.filter(({ type }) => type !== 'keyword_argument')
  if (
    positional.length === 0 ||
    positional.length > 2 ||
    (!isPlain && childAt(range, 'function')!.text === 'range')
  )
    refuse(source.path, node, 'counts steps, which is not supported')
  return { variable: left.text, range, first: positional.length === 2 ? positional[0] : undefined }
}

/** `range(n)`, `trange(n)`, or either as the first argument of a call such as `tqdm(range(n))`. */
function rangeIn(node: SyntaxNode): SyntaxNode | undefined {
  if (node.type !== 'call') return undefined
  const name = childAt(node, 'function')!
  const called = name.type === 'attribute' ? childAt(name, 'attribute')!.text : name.text
  if (called === 'range' || called === 'trange') return node
  const [first] = parts(childAt(node, 'arguments')!)
  return called === 'tqdm' && first !== undefined ? rangeIn(first) : undefined
}

function assigns(body: SyntaxNode, name: string): boolean {
  return flowOf({ ...body, children: [{ ...body, field: 'body' }] }).flow.assigned.has(name)
}

/** A round of epochs has a loop over data inside, or is called one. */
function isEpoch(loop: Loop, training: readonly TrainingCall[]): boolean {
  if (loop.variable.toLowerCase().includes('epoch')) return true
  return training.some(({ event }) => {
    const inner = event.loops[event.loops.indexOf(loop) + 1]
    if (inner === undefined) return false
    const isRange =
      inner.node.type === 'for_statement' && rangeIn(childAt(inner.node, 'right')!) !== undefined
    return inner.kind === 'for' && !isRange
  })
}

/** Whether a node is part of another one of the same file. */
export const isInside = (node: SyntaxNode, outer: SyntaxNode): boolean =>
  node.start >= outer.start && node.end <= outer.end
