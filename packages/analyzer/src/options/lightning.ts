/** `LightningCLI` and `jsonargparse`: a Trainer and a model from options. */
import type { Frame, Interpreter } from '../interpreter'
import { constant, dict, extern, textOf, unknown, type CallEvent, type Value } from '../values'
import { addOption } from './option'

/** Follows LightningCLI: it makes `model` and `datamodule`, then runs `Trainer(...)` and its `fit`. */
export function lightningResult(run: Interpreter, event: CallEvent, frame: Frame): Value | undefined {
  if (event.method === 'save_hyperparameters') return keepArguments(event, frame)
  if (event.method !== 'LightningCLI') return undefined
  run.style = 'lightning-cli'
  const named = new Map<string, Value>()
  const defaults = event.named.get('trainer_defaults')
  if (defaults?.kind === 'dict') for (const [key, value] of defaults.entries) named.set(key, value)
  const file = configPath(run.args)
  const config = file === undefined ? undefined : run.project.data(file, event.file.path)
  const settings = { run, config, event }
  addSettings('trainer', named, settings)
  const resume = addOption(run, {
    names: ['--ckpt_path'],
    key: 'ckpt_path',
    default: constant(null),
    at: event,
  })
  const parts = event.positional.map((callee, at) => {
    const given = { positional: [], named: new Map<string, Value>() }
    addSettings(at === 0 ? 'model' : 'data', given.named, settings)
    return run.dispatch({ callee, node: event.node, given }, frame)
  })
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

/** Adds the settings of a part from the configuration file and the command line. */
function addSettings(
  part: 'trainer' | 'model' | 'data',
  named: Map<string, Value>,
  { run, config, event }: { run: Interpreter; config: Value | undefined; event: CallEvent },
): void {
  const section = config?.kind === 'dict' ? config.entries.get(part) : undefined
  if (section?.kind === 'dict') for (const [key, value] of section.entries) named.set(key, value)
  const prefix = `--${part}.`
  for (const arg of run.args) {
    const name = arg.split('=')[0]!
    if (!name.startsWith(prefix)) continue
    const key = name.slice(prefix.length)
    const before = named.get(key) ?? constant(null)
    named.set(key, addOption(run, { names: [name], key: `${part}.${key}`, default: before, at: event }))
  }
}

/** `self.save_hyperparameters()` keeps the arguments of the constructor as `self.hparams`. */
function keepArguments({ receiver }: CallEvent, { scope }: Frame): Value | undefined {
  if (receiver?.kind !== 'instance') return undefined
  receiver.attributes.set('hparams', dict(new Map([...scope.names].filter(([name]) => name !== 'self'))))
  return constant(null)
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
