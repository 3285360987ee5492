/** `exec(open('configurator.py').read())`: the constants of the module are the options. */
import type { Frame, Interpreter } from '../interpreter'
import { constant, textOf, type CallEvent, type Value } from '../values'
import { addOption } from './option'

/** `exec` of any other text is an obstacle. */
export function applyConfigurator(run: Interpreter, event: CallEvent, frame: Frame): Value {
  const path = openedPath(event.positional[0])
  if (path === undefined) {
    run.project.obstacle(event.file.path, event.node.line, 'runs code that is known at run time only')
    return constant(null)
  }
  run.style = 'configurator'
  for (const arg of run.args) if (!arg.startsWith('-') && arg.endsWith('.py')) run.execFile(arg, frame)
  for (const [name, value] of [...frame.scope.names]) {
    if (name.startsWith('_') || value.kind !== 'constant' || value.value === null) continue
    frame.scope.put(name, addOption(run, { names: [`--${name}`], key: name, default: value, at: event }))
  }
  return constant(null)
}

/** The file of `open(path).read()`. */
function openedPath(value: Value | undefined): string | undefined {
  if (value?.kind !== 'made' || value.call.method !== 'read') return undefined
  const opened = value.call.receiver
  return opened?.kind === 'made' && opened.call.name === 'open'
    ? textOf(opened.call.positional[0])
    : undefined
}
