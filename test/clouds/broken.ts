/** Whole jobs at a provider one of whose answers is broken. */
import { ANY, AnswerBreaker, OF_JSON, OF_XML, type Faults, type Question } from '../backends/broken-answers'
import { Dice } from '../kit/dice'
import type { Addresses, CloudProvider, ProviderName } from './provider'
import { LOOK_MS, SPEC, TIMING, type CloudWorld } from './world'

/** Kinds of calls in the life of a job. */
const CALLS = ['launch', 'look', 'end', 'market'] as const
type Call = (typeof CALLS)[number]

/** Which answers are broken, and how. */
export interface BrokenAnswers {
  call: Call
  fault: string
  /** How many answers of this kind are sound before. */
  after: number
  times: number
}

/** How a call looks: method, path and the action of a form. */
const QUESTIONS: Readonly<Record<ProviderName, Readonly<Record<Call, RegExp>>>> = {
  ec2: {
    launch: / CreateFleet$/,
    look: / DescribeInstances$/,
    end: / TerminateInstances$/,
    market: / Describe(?:InstanceTypes|SpotPriceHistory|Images|Subnets)$/,
  },
  modal: { launch: /^PUT /, look: /^GET \S+\/jobs/, end: /\/cancel $/, market: /\/offers/ },
  lambda: {
    launch: /\/launch $/,
    look: /^GET \S+\/instances/,
    end: /\/terminate $/,
    market: /\/instance-types/,
  },
}

const faultsOf = ({ name }: CloudProvider): Faults => ({ ...ANY, ...(name === 'ec2' ? OF_XML : OF_JSON) })

/** A job whose workload ends, or hangs so that we must end its machine, and a few broken answers on its way. */
export function brokenWorld(seed: number, provider: CloudProvider): CloudWorld {
  const dice = new Dice(seed)
  const call = dice.oneOf(CALLS)
  const fault = dice.oneOf(Object.keys(faultsOf(provider)))
  const breaks: BrokenAnswers = { call, fault, after: dice.between(0, 3), times: dice.between(1, 3) }
  if (call === 'launch' || call === 'end') breaks.after = 0
  const hangs = call === 'end' || dice.chance(0.3)
  return {
    name: `seed ${seed}: ${breaks.times}x ${call} with ${fault} at ${provider.name}`,
    wishes: {
      provider,
      world: { seed },
      behave: (turn) => (hangs && turn === 1 ? { hangsAtStep: 20 } : {}),
      timing: { ...TIMING, ...provider.timing },
      breaks,
    },
    spec: { ...SPEC, ...provider.spec },
    happenings: [],
    mayEnd: ['completed'],
    isSureToStrike: false,
    isEndedByHand: false,
    lagMs: LOOK_MS + provider.lagMs,
    story: [JSON.stringify(breaks)],
  }
}

/** A proxy that breaks answers, before a provider. */
export interface Breaker {
  /** The provider by way of the proxy. */
  reached: Addresses
  /** How many answers were broken. */
  count: () => number
  close: () => void
}

export async function broken(
  cloud: Addresses,
  { name }: CloudProvider,
  { call, fault, after, times }: BrokenAnswers,
): Promise<Breaker> {
  const own = cloud.providers[name]
  const breaker = await AnswerBreaker.open(
    own?.endpoint ?? cloud.endpoint,
    { ...ANY, ...OF_XML, ...OF_JSON }[fault]!,
  )
  const question = QUESTIONS[name][call]
  let asked = 0
  breaker.breaks = (each) => {
    if (!question.test(wordsOf(each))) return false
    asked += 1
    return asked > after && asked <= after + times
  }
  const providers =
    own === undefined ? cloud.providers : { ...cloud.providers, [name]: { ...own, endpoint: breaker.url } }
  const endpoint = own === undefined ? breaker.url : cloud.endpoint
  const count = (): number => Math.min(times, Math.max(0, asked - after))
  return { reached: { endpoint, providers }, count, close: () => breaker.close() }
}

function wordsOf({ method, path, body }: Question): string {
  return `${method} ${path.split('?')[0]} ${new URLSearchParams(body).get('Action') ?? ''}`
}
