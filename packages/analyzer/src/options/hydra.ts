/** `hydra`: configuration files that are composed, with changes on the command line. */
import type { Frame, Interpreter } from '../interpreter'
import { folderOf, joined, valueOf } from '../project'
import { childAt, type SyntaxNode } from '../syntax'
import {
  constant,
  constantOf,
  dict,
  setting,
  textOf,
  unknown,
  type CallEvent,
  type Option,
  type Value,
} from '../values'

/** Functions that make an object of a configuration, and the key with the name of its class. */
const INSTANTIATORS: readonly (readonly [string, string])[] = [
  ['utils.instantiate', '_target_'],
  ['config.instantiate', '_component_'],
  ['instantiate', '_target_'],
]

/** `hydra.utils.instantiate`, and that of torchtune. */
export function hydraResult(run: Interpreter, event: CallEvent, frame: Frame): Value | undefined {
  const key = INSTANTIATORS.find(([name]) => event.name === name || event.name.endsWith(`.${name}`))?.[1]
  if (key === undefined) return undefined
  const [first] = event.positional
  const target = textOf(setting(first, key))
  if (target === undefined) return undefined
  const at = target.lastIndexOf('.')
  const module = run.module(target.slice(0, at), event.node, frame)
  const name = target.slice(at + 1)
  const member = module.kind === 'module' ? module.scope.names.get(name) : undefined
  const entries = new Map([...(first?.kind === 'dict' ? first.entries : []), ...event.named])
  entries.delete(key)
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
  let version: Value | undefined
  for (const argument of childAt(call, 'arguments')?.children ?? []) {
    if (argument.type !== 'keyword_argument') continue
    const name = childAt(argument, 'name')!.text
    const value = run.evaluate(childAt(argument, 'value')!, frame)
    const text = textOf(value)
    if (text !== undefined) settings.set(name, text)
    if (name === 'version_base') version = value
  }
  const chosen = wordAfter(run.args, '--config-name')
  const folder = joined(folderOf(file), settings.get('config_path') ?? '')
  const name = chosen ?? settings.get('config_name') ?? 'config'
  const config = composed(run, { folder, name })
  if (config === undefined) {
    run.lacksConfiguration = true
    run.project.obstacle(
      file,
      call.line,
      `the configuration ${joined(folder, withEnding(name))} was not found`,
    )
    return unknown()
  }
  for (const arg of run.args) applyOverride(run, { config, arg, folder })
  if (changesFolder(config, version)) run.changesFolder = true
  return asOptions(run, { config, prefix: '', file: joined(folder, withEnding(name)), whole: config })
}

/** The configuration that `@torchtune.config.parse` gives to its function: a file, with changes on the command line. */
export function configOfFile(run: Interpreter, { file, line }: { file: string; line: number }): Value {
  const path = wordAfter(run.args, '--config')
  const config = path === undefined ? undefined : run.project.data(path, file)
  if (path === undefined || config?.kind !== 'dict') {
    run.lacksConfiguration = true
    run.project.obstacle(file, line, 'needs a configuration: name its file with --config')
    return unknown()
  }
  for (const arg of run.args) applyOverride(run, { config, arg, folder: '' })
  return asOptions(run, { config, prefix: '', file: path, whole: config })
}

/** Until version 1.1 Hydra runs the program in a folder of each run. Source: https://hydra.cc/docs/upgrades/1.1_to_1.2/changes_to_job_working_dir/ */
function changesFolder(config: Dict, version: Value | undefined): boolean {
  const set = constantOf(setting(setting(setting(config, 'hydra'), 'job'), 'chdir'))
  if (typeof set === 'boolean') return set
  const base = constantOf(version)
  return version === undefined || (typeof base === 'string' && Number(base) < 1.2)
}

const withEnding = (name: string): string => (/\.ya?ml$/.test(name) ? name : `${name}.yaml`)

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
  { config, prefix, file, whole }: { config: Dict; prefix: string; file: string; whole: Dict },
): Value {
  const entries = new Map<string, Value>()
  for (const [key, written] of config.entries) {
    const value = resolved(written, whole)
    if (value.kind === 'dict') {
      entries.set(key, asOptions(run, { config: value, prefix: `${prefix}${key}.`, file, whole }))
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
      isFlag: false,
      standsAlone: false,
      type: undefined,
      file,
      line: 1,
    }
    run.options.push(option)
    entries.set(key, { ...value, options: new Set([option]) })
  }
  return { ...dict(entries) }
}

/** A text with `${name}` of other entries in their places; `${now:...}` and the like stay. */
function resolved(value: Value, whole: Dict): Value {
  const text = textOf(value)
  if (text?.includes('${') !== true) return value
  return constant(
    text.replaceAll(/\$\{([\w.]+)\}/g, (reference: string, path: string) => {
      const found = constantOf(path.split('.').reduce<Value | undefined>(setting, whole))
      return found === undefined || found === null ? reference : String(found)
    }),
  )
}
