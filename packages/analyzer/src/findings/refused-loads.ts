/** Checkpoints that `torch.load` refuses since PyTorch 2.6, because they hold more than tensors and plain data. */
import { argument } from '../facts'
import { alternatives, constantOf, type CallEvent, type Value } from '../values'
import type { Load } from './load'
import type { Save } from './save'

/**
 * Values that load only with `weights_only=False`, the default until PyTorch 2.5. Source:
 * https://docs.pytorch.org/docs/stable/notes/serialization.html
 */
const REFUSED: { what: string; isOne: (value: Value) => boolean }[] = [
  {
    what: 'values of NumPy',
    isOne: (value) => value.kind === 'made' && value.call.name.startsWith('numpy.'),
  },
  {
    what: 'configurations of yacs or OmegaConf',
    isOne: (value) => value.kind === 'made' && /^(?:yacs|omegaconf)\./.test(value.call.name),
  },
  {
    what: 'objects such as an argparse.Namespace',
    isOne: (value) => value.kind === 'instance' || (value.kind === 'dict' && value.isNamespace === true),
  },
]

/** Returns why a present PyTorch cannot load a save; undefined if no obstacle is known. */
export function refusedByTorch(loads: readonly Load[], saves: readonly Save[]): string | undefined {
  const calls = loads.flatMap(({ event }) => [...event.positional, ...event.named.values()].flatMap(loadsIn))
  if (!calls.some(isOnlyWeights)) return undefined
  const saved = saves.filter(({ event }) => event.name === 'torch.save')
  const values = saved.flatMap(({ event }) => entriesOf(argument(event, 'obj', 0)))
  const refused = REFUSED.find(({ isOne }) => values.some(isOne))
  return (
    refused &&
    `torch.load refuses ${refused.what} since PyTorch 2.6, unless it is called with weights_only=False`
  )
}

const loadsIn = ({ origins }: Value): CallEvent[] =>
  origins.map(({ call }) => call).filter(({ name }) => name === 'torch.load')

const isOnlyWeights = ({ named }: CallEvent): boolean => constantOf(named.get('weights_only')) !== false

const entriesOf = (value: Value | undefined): Value[] =>
  (value === undefined ? [] : alternatives(value)).flatMap((each) =>
    each.kind === 'dict' ? [...each.entries.values()] : [],
  )
