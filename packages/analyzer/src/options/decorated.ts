/** Functions whose decorators give them their arguments: `click`, `typer` applications and `hydra`. */
import type { Frame, Interpreter } from '../interpreter'
import { parameterName, childAt, parts, type SyntaxNode } from '../syntax'
import { constant, constantOf, textOf, type FunctionDefinition, type Value } from '../values'
import { configOfFile, hydraConfig } from './hydra'
import { parametersAsOptions } from './functions'
import { addOption } from './option'

/** The arguments that the decorators of a function add to a call; none for a function without such decorators. */
export function bindDecorated(
  run: Interpreter,
  definition: FunctionDefinition,
  {
    positional,
    named,
    frame,
  }: { positional: readonly Value[]; named: ReadonlyMap<string, Value>; frame: Frame },
): Map<string, Value> {
  if (definition.decorators.length === 0 || positional.length > 0 || named.size > 0) return new Map()
  const calls = definition.decorators.map((decorator) => parts(decorator)[0]!)
  const names = calls.map((call) => (childAt(call, 'function') ?? call).text)
  const hydra = calls.find((_, at) => names[at]!.endsWith('hydra.main') || names[at] === 'main')
  if (hydra !== undefined) return hydraArguments(run, { definition, call: hydra }, frame)
  if (names.some((name) => name.endsWith('config.parse'))) {
    run.style = 'hydra'
    const place = { file: definition.file.path, line: definition.node.line }
    return firstParameter(definition, configOfFile(run, place))
  }
  if (names.some((name) => name.endsWith('.option') || name === 'option' || name.endsWith('.argument')))
    return clickArguments(run, { definition, calls }, frame)
  if (names.some((name) => name.endsWith('app.command') || name.endsWith('app.callback'))) {
    run.style = 'typer'
    return parametersAsOptions(run, definition, frame)
  }
  return new Map()
}

function hydraArguments(
  run: Interpreter,
  { definition, call }: { definition: FunctionDefinition; call: SyntaxNode },
  frame: Frame,
): Map<string, Value> {
  run.style = 'hydra'
  const config = hydraConfig(run, { call, file: definition.file.path }, { ...frame, scope: definition.scope })
  return firstParameter(definition, config)
}

function firstParameter({ node }: FunctionDefinition, value: Value): Map<string, Value> {
  const first = childAt(node, 'parameters')?.children[0]
  const name = first === undefined ? undefined : parameterName(first)
  const result = new Map<string, Value>()
  if (name !== undefined) result.set(name, value)
  return result
}

function clickArguments(
  run: Interpreter,
  { definition, calls }: { definition: FunctionDefinition; calls: readonly SyntaxNode[] },
  frame: Frame,
): Map<string, Value> {
  run.style = 'click'
  const result = new Map<string, Value>()
  const scope = { ...frame, scope: definition.scope }
  for (const call of calls) {
    const method = childAt(call, 'function')?.text ?? ''
    if (!method.endsWith('option') && !method.endsWith('argument')) continue
    const { names, named } = argumentsOf(run, call, scope)
    const long = names.find((name) => name.startsWith('--')) ?? names[0]
    if (long === undefined) continue
    const [on, off] = long.split('/')
    const key = names.find((name) => !name.startsWith('-')) ?? on!.split('--').join('').split('-').join('_')
    const isFlag = constantOf(named.get('is_flag')) === true || off !== undefined
    const fallback = named.get('default') ?? constant(isFlag ? false : null)
    const spellings = [on!, ...names.filter((name) => name !== long), ...(off === undefined ? [] : [off])]
    const type = named.get('type')
    const at = { file: definition.file, node: call }
    result.set(
      key,
      addOption(run, {
        names: spellings,
        key,
        default: fallback,
        isFlag,
        type: type?.kind === 'extern' ? type.name : undefined,
        at,
      }),
    )
  }
  return result
}

function argumentsOf(
  run: Interpreter,
  call: SyntaxNode,
  frame: Frame,
): { names: string[]; named: Map<string, Value> } {
  const names: string[] = []
  const named = new Map<string, Value>()
  for (const argument of childAt(call, 'arguments')?.children ?? []) {
    if (argument.type === 'keyword_argument')
      named.set(childAt(argument, 'name')!.text, run.evaluate(childAt(argument, 'value')!, frame))
    else {
      const name = textOf(run.evaluate(argument, frame))
      if (name !== undefined) names.push(name)
    }
  }
  return { names, named }
}
