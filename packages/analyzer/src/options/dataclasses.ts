/** `HfArgumentParser` and `tyro`: options from the fields of dataclasses. */
import type { Frame, Interpreter } from '../interpreter'
import {
  dict,
  fieldDefault,
  list,
  setting,
  textOf,
  unknown,
  type CallEvent,
  type ClassDefinition,
  type Value,
} from '../values'
import { addOption } from './option'

const PARSERS = ['HfArgumentParser', 'TrlParser', 'H4ArgumentParser']

export function dataclassResult(run: Interpreter, event: CallEvent, frame: Frame): Value | undefined {
  if (event.name === 'tyro.cli' || event.name === 'simple_parsing.parse') return tyro(run, event, frame)
  const isParser = PARSERS.some((name) => event.name.includes(`${name}()`))
  if (!isParser || !event.method.startsWith('parse_')) return undefined
  run.style = 'dataclasses'
  const config = configOf(run, event)
  const parser = event.receiver?.kind === 'made' ? event.receiver.call : undefined
  const first = parser?.positional[0] ?? parser?.named.get('dataclass_types')
  const classes = first?.kind === 'list' ? first.items : first === undefined ? [] : [first]
  return list(classes.map((each) => fromOptions(run, { type: each, event, prefix: '', config }, frame)))
}

/** Returns the configuration that `parse_yaml_file` and similar methods read, and TrlParser's `--config`. */
function configOf(run: Interpreter, { method, positional, named, file }: CallEvent): Value | undefined {
  if (method === 'parse_dict') return positional[0] ?? named.get('args')
  const at = run.args.indexOf('--config')
  const path =
    method === 'parse_args_and_config'
      ? run.args[at === -1 ? run.args.length : at + 1]
      : textOf(positional[0] ?? named.get('yaml_file') ?? named.get('json_file'))
  return path === undefined ? undefined : run.project.data(path, file.path)
}

function tyro(run: Interpreter, event: CallEvent, frame: Frame): Value | undefined {
  const [first] = event.positional
  if (first?.kind !== 'class') return undefined
  run.style = 'tyro'
  return fromOptions(run, { type: first, event, prefix: '' }, frame)
}

interface Source {
  type: Value
  event: CallEvent
  /** Prefix of nested dataclasses: `optim.`. */
  prefix: string
  /** Values of a configuration file, which precede the defaults. */
  config?: Value | undefined
}

/** An object of a dataclass, with its fields as options. */
function fromOptions(run: Interpreter, { type, event, prefix, config }: Source, frame: Frame): Value {
  const fields = type.kind === 'class' ? fieldsOf(type.definition) : []
  const named = new Map<string, Value>()
  for (const { name, value, definition, node } of fields) {
    const at = { file: definition.file, node }
    const nested = value?.kind === 'made' ? value.call.named.get('default_factory') : value
    if (nested?.kind === 'class') {
      named.set(name, fromOptions(run, { type: nested, event, prefix: `${prefix}${name}.` }, frame))
      continue
    }
    const fallback = setting(config, name) ?? (value === undefined ? unknown() : fieldDefault(value))
    const key = `${prefix}${name}`
    const isFlag = fallback.kind === 'constant' && typeof fallback.value === 'boolean'
    const names = [`--${key}`, `--${key.split('_').join('-')}`]
    named.set(
      name,
      addOption(run, { names, key, default: fallback, isFlag, isRequired: value === undefined, at }),
    )
  }
  for (const [key, value] of argumentsOfBase(run, { type, event, config })) named.set(key, value)
  if (type.kind !== 'class' && type.kind !== 'extern') return { ...dict(named) }
  return run.dispatch({ callee: type, node: event.node, given: { positional: [], named } }, frame)
}

interface Field {
  name: string
  value: Value | undefined
  definition: ClassDefinition
  node: ClassDefinition['node']
}

function fieldsOf(definition: ClassDefinition): Field[] {
  const inherited = definition.bases.flatMap((base) =>
    base.kind === 'class' ? fieldsOf(base.definition) : [],
  )
  return [...inherited, ...definition.fields.map((field) => ({ ...field, definition }))]
}

/** Returns the options of a library's dataclass, such as TrainingArguments, that the command line gives. */
function argumentsOfBase(
  run: Interpreter,
  { type, event, config }: Pick<Source, 'type' | 'event' | 'config'>,
): Map<string, Value> {
  const base =
    type.kind === 'extern'
      ? type
      : type.kind === 'class'
        ? type.definition.bases.find(({ kind }) => kind === 'extern')
        : undefined
  const result = new Map<string, Value>()
  if (base?.kind !== 'extern' || !isSettings(base.name)) return result
  if (config?.kind === 'dict') for (const [key, value] of config.entries) result.set(key, value)
  for (const arg of run.args) {
    const name = arg.split('=')[0]!
    const isOther = run.options.some((option) => option.name === name) && !run.baseOptions.has(name)
    if (!name.startsWith('--') || isOther) continue
    run.baseOptions.add(name)
    const key = name.slice(2).split('-').join('_')
    result.set(key, addOption(run, { names: [name], key, default: unknown(), at: event }))
  }
  const resume = 'resume_from_checkpoint'
  if (!result.has(resume) && isTrainingArguments(base.name))
    result.set(
      resume,
      addOption(run, {
        names: [`--${resume}`],
        key: resume,
        default: { ...unknown(), kind: 'constant', value: null },
        at: event,
      }),
    )
  return result
}

/** Classes of Hugging Face's libraries whose attributes are given by options and files. */
export const isSettings = (name: string): boolean =>
  isTrainingArguments(name) || name === 'trl.ModelConfig' || name === 'trl.ScriptArguments'

/** Classes of Hugging Face's libraries that hold the settings of a Trainer. */
export function isTrainingArguments(name: string): boolean {
  const last = name.slice(name.lastIndexOf('.') + 1)
  return (
    last.endsWith('TrainingArguments') ||
    (name.startsWith('trl.') && last.endsWith('Config') && last !== 'ModelConfig')
  )
}
