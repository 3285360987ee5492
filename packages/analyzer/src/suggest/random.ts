/** Refuses random numbers that would differ in a resumed run. */
import type { Guard, Loop } from '../flow'
import { alternatives, constantOf, type CallEvent, type Value } from '../values'
import type { Program } from './checks'
import { identityOf, objectOf, roleOfObject, type NamedObject } from './objects'
import { refuseCall } from './refusal'

export const isRandom = (value: Value): boolean => roleOfObject(value)?.endsWith('-random') === true

const isIn = ({ loops }: CallEvent, { training }: Program): boolean => loops.includes(training.loop)

/** Sources of random numbers other than the global ones. */
export function checkRandom(program: Program, held: readonly NamedObject[]): void {
  const { run, events } = program.facts
  const named = new Set(held.flatMap(({ identities }) => [...identities]))
  for (const { attributes, definition } of run.instances)
    for (const value of attributes.values())
      for (const each of alternatives(value).filter(isRandom)) {
        const object = objectOf(each)
        if (object.kind !== 'made' || named.has(identityOf(object)) || isIn(object.call, program)) continue
        refuseCall(
          object.call,
          `makes random numbers of its own for ${definition.name}, and their state has no name at the loop`,
        )
      }
  for (const event of events.filter((each) => isLoaderPart(each) && !isIn(each, program))) {
    for (const each of [...event.named.values()].filter(isRandom))
      if (!named.has(identityOf(each)))
        refuseCall(event, 'draws its order from a generator that has no name at the loop')
    checkWorkers(event)
  }
}

export function checkWorkers(loader: CallEvent): void {
  if (truthOfArgument(loader.named.get('persistent_workers')))
    refuseCall(loader, 'keeps worker processes between epochs, whose random state cannot be saved')
}

export const isLoaderPart = ({ name }: CallEvent): boolean => name.startsWith('torch.utils.data.')

const truthOfArgument = (value: Value | undefined): boolean =>
  value !== undefined && constantOf(value) !== false

/** Data drawn without a seed differs after a restart. */
export function checkSeeds(events: readonly CallEvent[], loop?: Loop): void {
  for (const event of events) {
    if (loop !== undefined && event.loops.includes(loop)) continue
    if (NEW_SOURCES.has(event.method) && event.positional.length + event.named.size === 0)
      refuseCall(event, 'draws without a seed, so that a resumed run has other data: give it one')
    const seeds = SEEDS.find(([, draws]) => draws.some((draw) => event.name.startsWith(draw)))
    if (seeds === undefined || event.named.has('generator') || event.named.has('random_state')) continue
    const isSeeded = events.some(
      ({ name, guards }) =>
        [...seeds[0], ...EVERY_SEED].some((seed) => name.endsWith(seed)) && !isOff(guards),
    )
    if (!isSeeded)
      refuseCall(
        event,
        `draws random data without a seed, so that a resumed run has other data: call ${seeds[0][0]} first`,
      )
  }
}

const isOff = (guards: readonly Guard[]): boolean => guards.some(({ truth }) => truth === false)

const NEW_SOURCES = new Set(['default_rng', 'RandomState'])
const EVERY_SEED = ['seed_everything', 'set_seed', 'set_random_seed']
const SEEDS: readonly (readonly [seeds: readonly string[], draws: readonly string[]])[] = [
  [
    ['torch.manual_seed', 'torch.random.manual_seed'],
    [
      'torch.randn',
      'torch.rand',
      'torch.randint',
      'torch.randperm',
      'torch.normal',
      'torch.utils.data.random_split',
    ],
  ],
  [
    ['numpy.random.seed'],
    [
      'numpy.random.rand',
      'numpy.random.normal',
      'numpy.random.uniform',
      'numpy.random.permutation',
      'numpy.random.shuffle',
      'numpy.random.choice',
      'sklearn.model_selection.train_test_split',
    ],
  ],
  [['random.seed'], ['random.shuffle', 'random.sample', 'random.random', 'random.choice', 'random.randint']],
]
