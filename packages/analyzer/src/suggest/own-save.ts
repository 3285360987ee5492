/** Completes a program that saves in its loop but never loads: adds the missing state to its save, and the loading. */
import { savesOf } from '../findings/saves'
import type { Facts } from '../facts'
import { childAt, nodesOf, parts, type SyntaxNode } from '../syntax'
import type { CallEvent } from '../values'
import { addEntries, argumentsOf } from './calls'
import { isInside, type TrainingLoop } from './loop'
import { beginAt, entriesOf, firstName, keyOf, loadLines, positionLines, type LoopState } from './saving'
import type { Line, Writing } from './writing'

export interface OwnSave {
  event: CallEvent
  /** The dictionary that is saved. */
  dictionary: SyntaxNode
  /** Its keys, with the expressions. */
  saved: ReadonlyMap<string, SyntaxNode>
}

/** Returns the only save of the loop if, once completed, it contains the whole state of a round; otherwise the loop gets a new save. */
export function ownSave(facts: Facts, { training, held, format }: LoopState): OwnSave | undefined {
  const saves = savesOf(facts).filter(({ isPeriodic, truth }) => isPeriodic && truth !== false)
  const [save, another] = saves
  if (save === undefined || another !== undefined) return undefined
  const { event } = save
  const isHere = event.file === training.source && isInside(event.node, training.body)
  if (!isHere || event.loops.at(-1) !== training.loop || event.name !== SAVERS[format]) return undefined
  if (!isRegular(event, training) || changesAfter(event.node, training.body)) return undefined
  const dictionary = dictionaryOf(event, training)
  const saved = dictionary === undefined ? undefined : pairsOf(dictionary)
  if (saved === undefined) return undefined
  const texts = new Set([...saved.values()].map(({ text }) => text))
  const isModel = held.some(({ path, role }) => role === 'module' && texts.has(`${path}.state_dict()`))
  return isModel || format === 'pickle' ? { event, dictionary: dictionary!, saved } : undefined
}

const SAVERS: Readonly<Record<LoopState['format'], string>> = { torch: 'torch.save', pickle: 'pickle.dump' }

/** Whether it saves in each round, or in each n-th one. A save of only the best model may be far behind. */
function isRegular({ guards, file }: CallEvent, { loop, counter }: TrainingLoop): boolean {
  const inside = guards.filter((guard) => guard.file === file.path && guard.line > loop.line)
  return inside.every(
    ({ truth, condition }) =>
      truth === true ||
      (condition.kind === 'unknown' &&
        condition.every !== undefined &&
        counter !== undefined &&
        condition.every.unitText.includes(counter.variable)),
  )
}

/** Whether something that a round leaves changes between the save and the end of the round. */
function changesAfter(save: SyntaxNode, body: SyntaxNode): boolean {
  const blocks = [...nodesOf(body)].filter(({ type }) => type === 'block')
  const around = [body, ...blocks].filter((block) => isInside(save, block))
  return around.some((block) =>
    parts(block).some((statement) => statement.start >= save.end && !isQuiet(statement)),
  )
}

const QUIET = [
  'print',
  'time.sleep',
  'logger.',
  'logging.',
  'log.',
  'writer.',
  'wandb.log',
  'mlflow.',
  'tqdm.write',
]

function isQuiet({ type, children }: SyntaxNode): boolean {
  const [first] = children
  if (type === 'pass_statement') return true
  if (type !== 'expression_statement' || first?.type !== 'call') return first?.type === 'string'
  const called = childAt(first, 'function')!.text
  return QUIET.some((name) => (name.endsWith('.') ? called.startsWith(name) : called === name))
}

/** Returns the saved value as a literal: in the call, or in one earlier assignment to the name. */
function dictionaryOf(event: CallEvent, { body }: TrainingLoop): SyntaxNode | undefined {
  const [given] = parts(argumentsOf(event))
  if (given?.type !== 'identifier') return given?.type === 'dictionary' ? given : undefined
  const writes = [...nodesOf(body)].filter(
    (node) => node.type === 'assignment' && childAt(node, 'left')?.text === given.text,
  )
  const [write] = writes
  const changes = [...nodesOf(body)].some(
    ({ type, text }) => type === 'subscript' && text.startsWith(`${given.text}[`),
  )
  const right = write === undefined ? undefined : childAt(write, 'right')
  // Between the two nothing may change: the statements follow one another.
  const block = [body, ...nodesOf(body)].find(
    (node) => node.type === 'block' && node.children.some(({ children }) => children[0] === write),
  )
  const statements = block === undefined ? [] : parts(block)
  const at = statements.findIndex(({ children }) => children[0] === write)
  const next = statements[at + 1]
  const isNext = next !== undefined && isInside(event.node, next)
  return writes.length === 1 && !changes && isNext && right?.type === 'dictionary' ? right : undefined
}

function pairsOf(dictionary: SyntaxNode): Map<string, SyntaxNode> | undefined {
  const found = new Map<string, SyntaxNode>()
  for (const pair of parts(dictionary)) {
    const key = childAt(pair, 'key')
    const isPlain = key?.type === 'string' && key.text.length > 2 && /^['"][^'"\\]+['"]$/.test(key.text)
    if (pair.type !== 'pair' || !isPlain) return undefined
    found.set(key.text.slice(1, -1), childAt(pair, 'value')!)
  }
  return found
}

/** Completes the save and writes the loading. */
export function writeRest(writing: Writing, state: LoopState, { dictionary, saved }: OwnSave): void {
  const { training, format } = state
  const { counter, loop, blocks } = training
  const os = writing.module('os')
  const names = {
    resume: writing.free('resume_from'),
    checkpoint: writing.free('checkpoint'),
    file: writing.free('checkpoint_file'),
    library: writing.module(format),
  }
  const keyFor = (text: string): string | undefined =>
    [...saved].find(([, value]) => value.text === text)?.[0]
  const added: string[] = []
  const entries = entriesOf(writing, state, [...saved.keys()]).map((entry) => {
    const own = keyFor(entry.saved)
    if (own === undefined) added.push(`"${entry.key}": ${entry.saved}`)
    return entry.restore(`${names.checkpoint}["${own ?? entry.key}"]`)
  })
  const first = counter === undefined ? '' : firstName(writing, counter)
  const position = positionOf(state, saved)
  if (position?.isNew === true) added.unshift(`"${position.key}": ${counter!.variable}`)
  writing.before(loop.node, blocks[0]!.children, [
    [0, `${names.resume} = ${os}.environ.get("CRUCIBLE_RESUME_FROM")`],
    ...(counter === undefined ? [] : [[0, `${first} = ${counter.first?.text ?? '0'}`] as const]),
    [0, `if ${names.resume}:`],
    ...loadLines(state, names),
    ...entries.flat(),
    ...(position === undefined ? [] : linesOf(position, { state, first, checkpoint: names.checkpoint })),
  ])
  if (counter !== undefined) beginAt(writing, counter, first)
  addEntries(writing, dictionary, added)
}

interface Position {
  key: string
  /** Whether the save does not hold it yet. */
  isNew: boolean
  /** Whether it is the first round to do, rather than the last one done. */
  isNext: boolean
}

/** Returns the place of the number of the round in what the program saves. */
function positionOf({ training, isCounterRead }: LoopState, saved: OwnSave['saved']): Position | undefined {
  const { counter } = training
  if (counter === undefined) return undefined
  const keyFor = (text: string): string | undefined =>
    [...saved].find(([, value]) => value.text === text)?.[0]
  const last = keyFor(counter.variable)
  if (last !== undefined) return { key: last, isNew: false, isNext: false }
  const next = isCounterRead ? undefined : keyFor(`${counter.variable} + 1`)
  if (next !== undefined) return { key: next, isNew: false, isNext: true }
  const key = keyOf(counter.variable)
  return { key: saved.has(key) ? `resume_${key}` : key, isNew: true, isNext: false }
}

function linesOf(
  { key, isNext }: Position,
  { state, first, checkpoint }: { state: LoopState; first: string; checkpoint: string },
): Line[] {
  const from = `${checkpoint}["${key}"]`
  return isNext ? [[1, `${first} = ${from}`]] : positionLines({ state, from, first })
}
