import type { FaultText, WorldText } from '#small-cloud'
import type { FaultKind } from '#small-cloud/world/fault-schema'
import type { Behaviour } from '../backends/scripted/behaviour'
import { until } from '../support/until'
import { Dice } from '../kit/dice'
import type { CloudWishes } from './cloud'
import { drawFault } from './faults'
import type { CloudProvider } from './provider'
import { CHANGES, EC2 } from './providers/ec2'
import { LOOK_MS, SLOW_LISTS, SPEC, TIMING, type CloudWorld, type Happening } from './world'

/** With it every kind is drawn so that an undisturbed life gives it its occasion. */
export const CERTAIN_SEED = 1

/** One fault and nothing else: the job gets over it. */
export function lonelyFault(kind: FaultKind, seed: number, provider: CloudProvider): CloudWorld {
  const faults = [drawFault(new Dice(seed), provider.faults, kind)]
  const world = alone(`${kind} ${seed}`, { seed, faults }, { provider })
  return { ...world, isSureToStrike: seed === CERTAIN_SEED }
}

/** Faults at EC2 that are worse where something else is not as it mostly is. */
export function worseFaults(): CloudWorld[] {
  const lost: FaultText = { fault: 'lost-answer', times: 1, where: { action: 'CreateFleet' } }
  const lostWords: FaultText = {
    fault: 'lost-answer',
    chance: 0.3,
    where: { service: 's3', action: 'PutObject' },
  }
  const tornAtFirst = (turn: number): Partial<Behaviour> =>
    turn === 1 ? { torn: { atStep: 40, how: 'no-manifest' }, diesAtStep: 45 } : {}
  return [
    alone('lost-answer, and lists that do not show the machine', {
      faults: [lost],
      durations: { notFound: [...SLOW_LISTS.notFound] },
    }),
    alone('lost-answer, of every write to the store', { faults: [lostWords] }, { hasBucket: true }),
    alone('crash, with a checkpoint on its way', { faults: [] }, { behave: tornAtFirst }),
    ...CHANGES.map((where) =>
      alone(
        `lost-answer, and nothing in its place, of ${where.action}`,
        { faults: [{ fault: 'lost-answer', instead: 'silence', times: 1, where }] },
        // One machine is ended by us.
        { behave: (turn) => (turn === 1 ? { hangsAtStep: 20 } : {}) },
      ),
    ),
    {
      ...alone(
        'error, on every question how a machine at work is',
        { faults: [] },
        { behave: () => ({ stepsPerSecond: 20 }) },
      ),
      happenings: [HIDDEN_AT_WORK],
    },
    alone('prices that change while a machine works', { faults: [], prices: RESTLESS_PRICES }),
  ]
}

/** However busy this machine is. */
const BEGUN_WITHIN_MS = 120_000
/** The watch looks at a machine that works, and learns nothing, often enough to take it twice for whatever it likes. */
const HIDDEN_AT_WORK: Happening = {
  atMs: 0,
  name: 'every question how a machine at work is gets an error',
  happen: async ({ deployment: { cloud, machines } }) => {
    const where = { service: 'ec2', action: 'DescribeInstances' } as const
    await until(() => machines.some(({ isAtWork }) => isAtWork), BEGUN_WITHIN_MS)
    const seen = cloud.journal.calls(where).length
    await until(() => cloud.journal.calls(where).length > seen)
    // Four looks of three tries.
    cloud.addFault({ fault: 'error', code: 'Unavailable', status: 503, times: 12, where })
  },
}

/** Up every half a second, from little to nearly what it costs on demand, and down again, for longer than a job takes to begin here. */
const RESTLESS_PRICES: WorldText['prices'] = [
  {
    capacity: 'spot',
    changes: Array.from({ length: 400 }, (_, step): [number, number] => [step * 500, 0.3 + 0.1 * (step % 7)]),
  },
]

function alone(name: string, world: WorldText, more: Partial<CloudWishes> = {}): CloudWorld {
  const { provider = EC2 } = more
  const timing = { ...TIMING, ...provider.timing }
  return {
    name: `${name} at ${provider.name}`,
    wishes: { provider, world, timing, config: { staleForMs: SLOW_LISTS.staleForMs }, ...more },
    spec: { ...SPEC, ...provider.spec },
    happenings: [],
    mayEnd: ['completed'],
    isSureToStrike: true,
    isEndedByHand: false,
    lagMs: LOOK_MS + provider.lagMs,
    story: [JSON.stringify(world)],
  }
}
