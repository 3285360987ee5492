/** Calls of libraries: how their arguments and lists of callbacks are read and changed. */
import { externalBase } from '../members'
import { childAt, nodesOf, parts, type SourceFile, type SyntaxNode } from '../syntax'
import { constantOf, constructionOf, type CallEvent, type Value } from '../values'
import { refuse, refuseCall } from './refusal'
import type { Writing } from './writing'

export const argumentsOf = ({ node }: CallEvent): SyntaxNode => childAt(node, 'arguments')!

/** The value of a named argument, as it is written. */
export function namedNode(event: CallEvent, name: string): SyntaxNode | undefined {
  const given = parts(argumentsOf(event)).find(
    (each) => each.type === 'keyword_argument' && childAt(each, 'name')!.text === name,
  )
  return given === undefined ? undefined : childAt(given, 'value')
}

export const positionalNodes = (event: CallEvent): SyntaxNode[] =>
  parts(argumentsOf(event)).filter(({ type }) => type !== 'keyword_argument' && !type.endsWith('_splat'))

/** Refuses arguments that are not written in the call. */
export function checkWritten(event: CallEvent): void {
  if (childAt(event.node, 'arguments')?.type !== 'argument_list')
    refuseCall(event, 'is called in a way that this analysis does not change')
  if (parts(argumentsOf(event)).some(({ type }) => type.endsWith('_splat')))
    refuseCall(event, 'is given settings that are not written there')
}

/** Whether an argument is missing or an empty constant. */
export function isUnset(value: Value | undefined, ...nothing: readonly unknown[]): boolean {
  return value === undefined || [null, ...nothing].includes(constantOf(value))
}

/** Adds `name=value`, in the way in which the arguments are laid out. */
export function addArgument(writing: Writing, event: CallEvent, text: string): void {
  addItem(writing, argumentsOf(event), text)
}

/** Gives a named argument a value, or adds it. */
export function setArgument(
  writing: Writing,
  event: CallEvent,
  { name, text }: { name: string; text: string },
): void {
  const given = namedNode(event, name)
  if (given === undefined) addArgument(writing, event, `${name}=${text}`)
  else writing.replace(given, text)
}

/** Adds an item to what is in brackets. */
function addItem(writing: Writing, list: SyntaxNode, text: string): void {
  const items = parts(list)
  const last = items.at(-1)
  if (last === undefined) return writing.insertAt(list.end - 1, text)
  const { text: whole } = writing.source
  const rest = whole.slice(last.end, list.end - 1)
  const isLastOfLine = writing.indentationOf(last) !== undefined && rest.includes('\n')
  if (!isLastOfLine) return writing.insertAt(last.end, `, ${text}`)
  // One item in each line, with or without a comma after the last one.
  const newline = whole.includes('\r\n') ? '\r\n' : '\n'
  const comma = rest.trimStart().startsWith(',') ? '' : ','
  const at = comma === '' ? whole.indexOf(',', last.end) + 1 : last.end
  writing.insertAt(at, `${comma}${newline}${writing.indentationOf(last)!}${text},`)
}

/** Adds entries to a dictionary, each in a line of its own. */
export function addEntries(writing: Writing, dictionary: SyntaxNode, texts: readonly string[]): void {
  const entries = parts(dictionary)
  const isSpread = entries.some((entry) => writing.indentationOf(entry) !== undefined)
  if (isSpread || dictionary.text.includes('#')) {
    for (const text of texts) addItem(writing, dictionary, writing.inStyle(text))
    return
  }
  const all = [...entries.map(({ text }) => text), ...texts.map((text) => writing.inStyle(text))]
  writing.replace(dictionary, writing.spread(dictionary, all))
}

/** Adds callbacks after those that a call has. */
export function addCallbacks(writing: Writing, event: CallEvent, added: readonly string[]): void {
  const given = namedNode(event, 'callbacks')
  const items = added.join(', ')
  if (given === undefined) return addArgument(writing, event, `callbacks=[${items}]`)
  if (given.type === 'none') return writing.replace(given, `[${items}]`)
  if (given.type === 'list') return addItem(writing, given, items)
  const isList = event.named.get('callbacks')?.kind === 'list'
  writing.replace(given, `[${isList ? '*' : ''}${given.text}, ${items}]`)
}

/** The statement around a node, and all statements of its block. */
export function statementOf(
  source: SourceFile,
  node: SyntaxNode,
): { statement: SyntaxNode; siblings: readonly SyntaxNode[] } {
  let found: { statement: SyntaxNode; siblings: readonly SyntaxNode[] } | undefined
  for (const each of nodesOf(source.root)) {
    if (each !== source.root && each.type !== 'block') continue
    const statement = each.children.find(({ start, end }) => start <= node.start && end >= node.end)
    if (statement !== undefined) found = { statement, siblings: each.children }
  }
  if (found === undefined) refuse(source.path, node, 'is not part of a statement')
  return found
}

/** The statement of the file that holds a node. */
export function topStatement({ root, path }: SourceFile, node: SyntaxNode): SyntaxNode {
  const found = root.children.find(({ start, end }) => start <= node.start && end >= node.end)
  if (found === undefined) refuse(path, node, 'is not part of a statement')
  return found
}

/** The objects of a `callbacks` argument. */
export function callbacksOf(event: CallEvent): readonly Value[] {
  const given = event.named.get('callbacks')
  if (given === undefined || isUnset(given)) return []
  return given.kind === 'list' ? given.items : [given]
}

/** The call that made a callback, which may be around a function: `LearningRateScheduler(schedule)`. */
export function callbackCall(value: Value): CallEvent | undefined {
  return value.kind === 'function' ? value.wrappers.at(-1) : constructionOf(value)
}

/** Whether the project has written a callback. */
export const isOwnCallback = (value: Value): boolean =>
  value.kind === 'instance' && externalBase(value.definition)?.endsWith('Callback') === true
