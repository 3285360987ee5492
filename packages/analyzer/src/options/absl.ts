/** `absl.flags` and `ml_collections.config_flags`. */
import { callPlain } from '../builtins'
import type { Frame, Interpreter } from '../interpreter'
import { constant, constantOf, setting, textOf, unknown, type CallEvent, type Value } from '../values'
import { addOption } from './option'

export function abslResult(run: Interpreter, event: CallEvent, frame: Frame): Value | undefined {
  if (!event.method.startsWith('DEFINE_')) return undefined
  const key = textOf(event.positional[0]) ?? textOf(event.named.get('name'))
  if (key === undefined) return undefined
  run.style = 'absl'
  const fallback = event.positional[1] ?? event.named.get('default') ?? constant(null)
  const isFlag = event.method === 'DEFINE_boolean' || event.method === 'DEFINE_bool'
  const names = [`--${key}`, ...(isFlag ? [`--no${key}`] : [])]
  const value = addOption(run, { names, key, default: fallback, isFlag, at: event })
  const option = run.options.find((each) => each.key === key)!
  if (run.args.includes(`--no${key}`)) option.given = constant(false)
  if (event.method === 'DEFINE_config_file') {
    const config = configFile(run, constantOf(option.given ?? fallback), frame)
    for (const arg of run.args) changeEntry(run, { config, prefix: `--${key}.`, arg, event })
    option.given = config
    return holder(config)
  }
  return holder(value)
}

/** `--config.optimizer.lr=0.1` */
function changeEntry(
  run: Interpreter,
  { config, prefix, arg, event }: { config: Value; prefix: string; arg: string; event: CallEvent },
): void {
  const [name = ''] = arg.split('=')
  if (!name.startsWith(prefix)) return
  const keys = name.slice(prefix.length).split('.')
  const last = keys.pop()!
  const owner = keys.reduce<Value | undefined>(setting, config)
  if (owner?.kind !== 'dict') return
  const before = owner.entries.get(last) ?? constant(null)
  owner.entries.set(last, addOption(run, { names: [name], key: name.slice(2), default: before, at: event }))
}

/** `DEFINE_integer` returns an object whose `value` is the flag's value. */
function holder(value: Value): Value {
  const { options, origins } = value
  return { options, origins, kind: 'dict', entries: new Map([['value', value]]) }
}

/** The configuration of `settings.py`, or of `settings.py:large`, whose text is the argument of its function. */
function configFile(run: Interpreter, given: unknown, frame: Frame): Value {
  if (typeof given !== 'string') return unknown()
  const [path = '', ...rest] = given.split(':')
  const name = path.split('/').join('.')
  const module = run.module(name.endsWith('.py') ? name.slice(0, -3) : name, frame.scope.file.root, frame)
  if (module.kind !== 'module') return unknown()
  const words = rest.length === 0 ? [] : [constant(rest.join(':'))]
  return callPlain(run, module.scope.names.get('get_config'), frame, words) ?? unknown()
}
