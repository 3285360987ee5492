/** `LightningCLI` and `jsonargparse`: a Trainer and a model from options. */
import type { Frame, Interpreter } from '../interpreter'
import { constant, dict, extern, textOf, unknown, type CallEvent, type Value } from '../values'
import { addOption } from './option'

/** What LightningCLI runs: `model` and `datamodule` are made, then `Trainer(...)` and its `fit`. */
export function lightningResult(run: Interpreter, event: CallEvent, frame: Frame): Value | undefined {
  if (event.method !== 'LightningCLI') return undefined
  run.style = 'lightning-cli'
  const named = new Map<string, Value>()
  const defaults = event.named.get('trainer_defaults')
  if (defaults?.kind === 'dict') for (const [key, value] of defaults.entries) named.set(key, value)
  const file = configPath(run.args)
  const config = file === undefined ? undefined : run.project.data(file, event.file.path)
  const section = config?.kind === 'dict' ? config.entries.get('trainer') : undefined
  if (section?.kind === 'dict') for (const [key, value] of section.entries) named.set(key, value)
  for (const arg of run.args) {
    const name = arg.split('=')[0]!
    if (!name.startsWith('--trainer.')) continue
    const key = name.slice('--trainer.'.length)
    named.set(
      key,
      addOption(run, {
        names: [name],
        key: `trainer.${key}`,
        default: named.get(key) ?? constant(null),
        at: event,
      }),
    )
  }
  const resume = addOption(run, {
    names: ['--ckpt_path'],
    key: 'ckpt_path',
    default: constant(null),
    at: event,
  })
  const parts = event.positional.map((callee) =>
    run.dispatch({ callee, node: event.node, given: { positional: [], named: new Map() } }, frame),
  )
  const call = (
    name: string,
    receiver: Value | undefined,
    given: { positional: Value[]; named: Map<string, Value> },
  ): Value => run.dispatch({ callee: extern(name, receiver), node: event.node, given }, frame)
  const trainer = call('lightning.Trainer', undefined, { positional: [], named })
  if (textOf(event.named.get('run')) === undefined && runs(event))
    call('lightning.Trainer().fit', trainer, { positional: parts, named: new Map([['ckpt_path', resume]]) })
  return {
    ...dict(
      new Map([
        ['trainer', trainer],
        ['model', parts[0] ?? unknown()],
        ['datamodule', parts[1] ?? unknown()],
      ]),
    ),
  }
}

/** `run=False` leaves it to the program to call `fit`. */
function runs(event: CallEvent): boolean {
  const run = event.named.get('run')
  return run?.kind !== 'constant' || run.value !== false
}

function configPath(args: readonly string[]): string | undefined {
  const at = args.findIndex((arg) => arg === '--config' || arg === '-c')
  if (at !== -1) return args[at + 1]
  return args.find((arg) => arg.startsWith('--config='))?.slice('--config='.length)
}
