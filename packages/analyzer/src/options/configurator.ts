/** `exec(open('configurator.py').read())`: the constants of the module are the options. */
import type { Frame, Interpreter } from '../interpreter'
import { openedPath } from '../files'
import { constant, textOf, type CallEvent, type Scope, type Value } from '../values'
import { addOption } from './option'

/** `exec` of any other text is an obstacle. */
export function applyConfigurator(run: Interpreter, event: CallEvent, frame: Frame): Value {
  const [code] = event.positional
  const path = code?.kind === 'made' ? textOf(openedPath(code)) : undefined
  if (path === undefined) {
    run.project.obstacle(event.file.path, event.node.line, 'runs code that is known only at run time')
    return constant(null)
  }
  for (const arg of run.args) if (!arg.startsWith('-') && arg.endsWith('.py')) run.execFile(arg, frame)
  constantsAsOptions(run, frame.scope, event)
  return constant(null)
}

/** Makes every constant of a module an option of the same name. */
export function constantsAsOptions(
  run: Interpreter,
  scope: Scope,
  at: Pick<CallEvent, 'file' | 'node'>,
): void {
  if (run.style === 'configurator') return
  run.style = 'configurator'
  for (const [name, value] of [...scope.names]) {
    if (name.startsWith('_') || value.kind !== 'constant' || value.value === null) continue
    scope.put(name, addOption(run, { names: [`--${name}`], key: name, default: value, at }))
  }
}
