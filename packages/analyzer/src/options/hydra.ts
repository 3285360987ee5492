/** `hydra`: configuration files that are composed, with changes on the command line. */
import type { Frame, Interpreter } from '../interpreter'
import { folderOf, joined, valueOf } from '../project'
import { childAt, type SyntaxNode } from '../syntax'
import { constant, dict, textOf, unknown, type CallEvent, type Option, type Value } from '../values'

/** `hydra.compose` and `hydra.utils.instantiate`. */
export function hydraResult(run: Interpreter, event: CallEvent, frame: Frame): Value | undefined {
  if (!event.name.endsWith('utils.instantiate') && event.name !== 'instantiate') return undefined
  const [first] = event.positional
  const target = first?.kind === 'dict' ? textOf(first.entries.get('_target_')) : undefined
  if (target === undefined) return undefined
  const at = target.lastIndexOf('.')
  const module = run.module(target.slice(0, at), event.node, frame)
  const name = target.slice(at + 1)
  const member = module.kind === 'module' ? module.scope.names.get(name) : undefined
  const entries = new Map([...(first?.kind === 'dict' ? first.entries : []), ...event.named])
  entries.delete('_target_')
  return instantiator(run, { target: member, name: target, entries, event }, frame)
}

interface Instantiation {
  target: Value | undefined
  name: string
  entries: Map<string, Value>
  event: CallEvent
}

function instantiator(
  run: Interpreter,
  { target, name, entries, event }: Instantiation,
  frame: Frame,
): Value {
  const callee: Value = target ?? { ...unknown(), kind: 'extern', name, receiver: undefined }
  return run.dispatch({ callee, node: event.node, given: { positional: [], named: entries } }, frame)
}

/** The configuration that `@hydra.main` gives to its function. */
export function hydraConfig(
  run: Interpreter,
  { call, file }: { call: SyntaxNode; file: string },
  frame: Frame,
): Value {
  const settings = new Map<string, string>()
  for (const argument of childAt(call, 'arguments')?.children ?? []) {
    if (argument.type !== 'keyword_argument') continue
    const value = textOf(run.evaluate(childAt(argument, 'value')!, frame))
    if (value !== undefined) settings.set(childAt(argument, 'name')!.text, value)
  }
  const chosen = wordAfter(run.args, '--config-name')
  const folder = joined(folderOf(file), settings.get('config_path') ?? '')
  const name = chosen ?? settings.get('config_name') ?? 'config'
  const config = composed(run, { folder, name })
  if (config === undefined) {
    run.project.obstacle(file, call.line, `the configuration ${joined(folder, name)}.yaml was not found`)
    return unknown()
  }
  for (const arg of run.args) applyOverride(run, { config, arg, folder })
  return asOptions(run, { config, prefix: '', file: joined(folder, withEnding(name)) })
}

const withEnding = (name: string): string => (name.endsWith('.yaml') ? name : `${name}.yaml`)

function wordAfter(args: readonly string[], name: string): string | undefined {
  const at = args.indexOf(name)
  if (at !== -1) return args[at + 1]
  return args.find((arg) => arg.startsWith(`${name}=`))?.slice(name.length + 1)
}

type Dict = Extract<Value, { kind: 'dict' }>

/** A file with the files that its `defaults` name. */
function composed(run: Interpreter, { folder, name }: { folder: string; name: string }): Dict | undefined {
  const data = run.project.data(joined(folder, withEnding(name)), '')
  if (data?.kind !== 'dict') return undefined
  const defaults = data.entries.get('defaults')
  const result: Dict = { ...dict(new Map()), kind: 'dict', entries: new Map() }
  for (const item of defaults?.kind === 'list' ? defaults.items : []) {
    if (item.kind === 'constant' && typeof item.value === 'string' && item.value !== '_self_')
      merge(result, composed(run, { folder, name: item.value }))
    if (item.kind !== 'dict') continue
    for (const [group, choice] of item.entries) {
      const file = textOf(choice)
      const part =
        file === undefined ? undefined : composed(run, { folder: joined(folder, group), name: file })
      if (part !== undefined) result.entries.set(group, part)
    }
  }
  merge(result, data)
  result.entries.delete('defaults')
  return result
}

function merge(into: Dict, from: Dict | undefined): void {
  for (const [key, value] of from?.entries ?? []) {
    const before = into.entries.get(key)
    if (before?.kind === 'dict' && value.kind === 'dict') merge(before, value)
    else into.entries.set(key, value)
  }
}

/** `optimizer.lr=0.1`, `+trainer.gpus=2`, `model=large` */
function applyOverride(
  run: Interpreter,
  { config, arg, folder }: { config: Dict; arg: string; folder: string },
): void {
  const at = arg.indexOf('=')
  if (at === -1 || arg.startsWith('-')) return
  const path = arg
    .slice(arg.startsWith('+') ? 1 : 0, at)
    .split('+')
    .join('')
  const text = arg.slice(at + 1)
  const keys = path.split('.')
  const last = keys.pop()!
  let place = config
  for (const key of keys) {
    const next = place.entries.get(key)
    if (next?.kind !== 'dict') return
    place = next
  }
  const group =
    place.entries.get(last)?.kind === 'dict'
      ? composed(run, { folder: joined(folder, path), name: text })
      : undefined
  place.entries.set(last, group ?? overrideValue(text))
}

function overrideValue(text: string): Value {
  const number = Number(text)
  if (text !== '' && !Number.isNaN(number)) return constant(number)
  if (text === 'null') return constant(null)
  return valueOf(
    text === 'true' || text === 'True' ? true : text === 'false' || text === 'False' ? false : text,
  )
}

/** Makes every leaf of the configuration an option. */
function asOptions(
  run: Interpreter,
  { config, prefix, file }: { config: Dict; prefix: string; file: string },
): Value {
  const entries = new Map<string, Value>()
  for (const [key, value] of config.entries) {
    if (value.kind === 'dict') {
      entries.set(key, asOptions(run, { config: value, prefix: `${prefix}${key}.`, file }))
      continue
    }
    const isGiven = run.args.some((arg) => arg.startsWith(`${prefix}${key}=`))
    const name = `${prefix}${key}`
    const option: Option = {
      name,
      key: name,
      default: value,
      given: isGiven ? value : undefined,
      isRequired: false,
      type: undefined,
      file,
      line: 1,
    }
    run.options.push(option)
    entries.set(key, { ...value, options: new Set([option]) })
  }
  return { ...dict(entries) }
}
