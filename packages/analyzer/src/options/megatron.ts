/** Megatron-LM: its own parser defines the options, and `pretrain` trains. */
import type { Frame, Interpreter } from '../interpreter'
import { constant, dict, unknown, type CallEvent, type Value } from '../values'
import { addOption } from './option'

export const isMegatronTraining = ({ name, method }: CallEvent): boolean =>
  name.startsWith('megatron.') && method === 'pretrain'

export function megatronResult(run: Interpreter, event: CallEvent, frame: Frame): Value | undefined {
  if (!event.name.startsWith('megatron.')) return undefined
  if (event.method === 'get_args') return dict(argumentsOf(run, event))
  if (!isMegatronTraining(event)) return undefined
  argumentsOf(run, event)
  // Megatron calls the given functions to build the data and the model, and for each step.
  for (const given of [...event.positional, ...event.named.values()])
    if (given.kind === 'function') run.callFunction(given, { positional: [], named: new Map(), frame })
  return unknown()
}

/** Options that are off unless the command gives them. */
const OFF = ['--save', '--load', '--save-interval']

function argumentsOf(run: Interpreter, at: CallEvent): Map<string, Value> {
  run.style = 'argparse'
  const given = run.args.flatMap((arg) => (arg.startsWith('--') ? [arg.split('=')[0]!] : []))
  const names = [...new Set([...given, ...OFF])]
  return new Map(
    names.map((name) => {
      const key = name.slice(2).split('-').join('_')
      return [key, addOption(run, { names: [name], key, default: constant(null), at })]
    }),
  )
}

/** The value of an option of Megatron, such as `train_iters`; `undefined` if the command does not give it. */
export const megatronOption = (run: Interpreter, key: string): Value | undefined =>
  run.options.find((option) => option.key === key)?.given
