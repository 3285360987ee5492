/** `fire` and `typer.run`: options from the parameters of a function. */
import type { Frame, Interpreter } from '../interpreter'
import { parameterName, childAt } from '../syntax'
import { dict, unknown, type CallEvent, type FunctionDefinition, type Value } from '../values'
import { addOption } from './option'

export function functionResult(run: Interpreter, event: CallEvent, frame: Frame): Value | undefined {
  const style = event.name === 'fire.Fire' ? 'fire' : event.name === 'typer.run' ? 'typer' : undefined
  // Without an object, or with a dictionary of functions, the first word of the command names the function.
  const [word = ''] = run.args
  const [given = style === 'fire' ? dict(frame.scope.module.names) : undefined] = event.positional
  const first = given?.kind === 'dict' ? given.entries.get(word) : given
  if (style === undefined || first?.kind !== 'function') return undefined
  run.style = style
  const named = parametersAsOptions(run, first.definition, frame)
  return run.callFunction(first, { positional: [], named, frame })
}

/** Makes each parameter of a function an option of the same name. */
export function parametersAsOptions(
  run: Interpreter,
  definition: FunctionDefinition,
  frame: Frame,
): Map<string, Value> {
  const named = new Map<string, Value>()
  for (const parameter of childAt(definition.node, 'parameters')?.children ?? []) {
    const name = parameterName(parameter)
    if (name === undefined || name === 'self') continue
    const written = childAt(parameter, 'value')
    const value =
      written === undefined ? undefined : run.evaluate(written, { ...frame, scope: definition.scope })
    const fallback = value === undefined ? unknown() : typerDefault(value)
    const isFlag = fallback.kind === 'constant' && typeof fallback.value === 'boolean'
    const spellings = [`--${name.split('_').join('-')}`, `--${name}`]
    const names = run.style === 'fire' ? spellings.toReversed() : spellings
    const at = { file: definition.file, node: parameter }
    named.set(
      name,
      addOption(run, { names, key: name, default: fallback, isFlag, isRequired: written === undefined, at }),
    )
  }
  return named
}

/** `typer.Option(3, '--epochs')` */
function typerDefault(value: Value): Value {
  if (value.kind !== 'made' || !['Option', 'Argument'].includes(value.call.method)) return value
  return value.call.named.get('default') ?? value.call.positional[0] ?? unknown()
}
