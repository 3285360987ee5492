import type { JobSpec } from '../../core/job/job'
import type { JobReason } from '../../core/job/job'
import { microUsd } from '../../core/money/money'
import type { FaultText } from '#small-cloud'
import { Dice } from '../kit/dice'
import { sum } from '../kit/table'
import type { Happening as JobHappening } from '../proof/lived'
import { behaviourOf } from '../worlds/world'
import type { JobHandle } from '../workflows/harness'
import type { CloudDeployment, CloudWishes } from './cloud'
import { drawFault, drawStoreFault, kindsOf } from './faults'
import type { CloudProvider } from './provider'
import { mergeWorlds } from './providers'
import { patient } from '../support/patience'

export type Happening = JobHappening<CloudDeployment>

/** Everything about one run that its name decides. */
export interface CloudWorld {
  name: string
  wishes: CloudWishes
  spec: Partial<JobSpec>
  happenings: Happening[]
  /** How the job may end, by what it has to go through. */
  mayEnd: JobReason[]
  /** Every fault must have had its occasion. */
  isSureToStrike: boolean
  /** Somebody ends an attempt's workflow. */
  isEndedByHand: boolean
  /** How far behind the cloud's words may be. */
  lagMs: number
  /** What was chosen, in words, for when it goes wrong. */
  story: string[]
}

/** The last happening is over by then; a job takes two seconds of training. */
const HAPPENINGS_UNTIL_MS = 5_000
const FAULTS_MAX = 6
/** Attempts whose workloads may have trouble of their own. */
const TROUBLES_MAX = 3
export const COMPANY_CHANCE = 0.3

export const TIMING = {
  silenceMs: patient(2_500),
  drainMs: 700,
  leaseMs: 20_000,
  beatMs: 150,
  observeMs: 250,
  goneConfirmMs: 250,
}
export const SPEC: Partial<JobSpec> = {
  resources: { gpus: { min: 1 } },
  retries: { failures: 3, interruptions: 20 },
}

/** Lists so slow that a machine whose launch was not answered is not yet in them when it is looked for. */
export const SLOW_LISTS = { notFound: [6_000, 7_000], staleForMs: 8_000 } as const

/** What settling takes to see that a machine is gone. */
export const LOOK_MS = 1_500

/** Everything that a seed draws, at one provider. */
export function seededCloud(seed: number, provider: CloudProvider): CloudWorld {
  const dice = new Dice(seed)
  const kinds = kindsOf(provider.faults)
  const faults = Array.from({ length: dice.between(0, FAULTS_MAX) }, () =>
    drawFault(dice, provider.faults, dice.oneOf(kinds)),
  )
  const hasBucket = dice.chance(0.2)
  if (hasBucket) faults.push(drawStoreFault(dice), drawStoreFault(dice))
  const hasSlowLists = dice.chance(0.25)
  const durations = {
    ...durationsOf(dice),
    ...(hasSlowLists ? { notFound: [0, SLOW_LISTS.notFound[1]] as Range } : {}),
  }
  const limits = dice.chance(0.3) ? provider.tight : {}
  const stock = provider.stockOf(dice)
  const behaviours = Array.from({ length: TROUBLES_MAX }, () => (dice.chance(0.4) ? behaviourOf(dice) : {}))
  const { budgets } = provider.billing
  const budget = dice.chance(0.3) ? { budgetMicroUsd: microUsd(dice.between(...budgets) / 1e6) } : {}
  const happenings = happeningsOf(dice)
  const market = mergeWorlds(stock, provider.pricesOf(dice))
  // Drawn last: the rest of a seed stays what it was.
  const company = dice.chance(COMPANY_CHANCE) ? provider.companyOf?.(dice) : undefined
  return {
    name: `seed ${seed} at ${provider.name}`,
    wishes: {
      provider,
      world: mergeWorlds({ seed, faults, durations }, limits, market, company?.world ?? {}),
      behave: (turn) => behaviours[turn - 1] ?? {},
      timing: { ...TIMING, ...provider.timing },
      hasBucket,
      config: { ...company?.config, ...(hasSlowLists && { staleForMs: SLOW_LISTS.staleForMs }) },
    },
    spec: {
      ...SPEC,
      ...provider.spec,
      ...budget,
      ...(company && { resources: { ...SPEC.resources, ...company.resources } }),
    },
    happenings,
    mayEnd: endsOf({ provider, faults, happenings }, { hasBudget: budget.budgetMicroUsd !== undefined }),
    isSureToStrike: false,
    isEndedByHand: happenings.some(({ name }) => name === BY_HAND),
    lagMs: LOOK_MS + provider.lagMs + (durations.staleList?.[1] ?? 0) + (durations.notFound?.[1] ?? 0),
    story: [
      ...faults.map((fault) => JSON.stringify(fault)),
      `durations ${JSON.stringify(durations)}, limits ${JSON.stringify(limits)}`,
      `market ${JSON.stringify(market)}, ${JSON.stringify(budget)}`,
      ...(company === undefined ? [] : [`company ${JSON.stringify(company)}`]),
      ...behaviours.map((behaviour, index) => `machine ${index + 1} at work: ${JSON.stringify(behaviour)}`),
      ...happenings.map(({ atMs, name }) => `at ${atMs} ms: ${name}`),
    ],
  }
}

type Range = [number, number]

/** How far behind lists and objects are, and how slow machines; never beyond what the backend is configured to expect. */
export function durationsOf(
  dice: Dice,
): Partial<
  Record<'notFound' | 'staleList' | 'objectHidden' | 'invocationHidden' | 'pending' | 'register', Range>
> {
  const upTo = (mostMs: number): Range => [0, dice.between(0, mostMs)]
  if (dice.chance(0.4)) return {}
  return {
    notFound: upTo(1_000),
    staleList: upTo(1_000),
    objectHidden: upTo(1_000),
    invocationHidden: upTo(500),
    pending: upTo(600),
    register: upTo(600),
  }
}

const BY_HAND = 'attempt terminated by hand'
const CANCEL = 'cancel'
/** It ends what there is to see. */
const CANCEL_CHANCE = 0.08

function happeningsOf(dice: Dice): Happening[] {
  const hiddenMs = dice.between(700, 3_000)
  const restart =
    (name: 'orchestrator' | 'watches'): Happening['happen'] =>
    ({ deployment }) =>
      deployment.restart(name)
  const choices: Omit<Happening, 'atMs'>[] = [
    { name: 'orchestrator restarted', happen: restart('orchestrator') },
    {
      name: 'verbs restarted',
      happen: ({ deployment }) => Promise.all([deployment.restart('verbs'), deployment.restart('launches')]),
    },
    { name: 'watches restarted', happen: restart('watches') },
    { name: 'store down for a while', happen: ({ deployment }) => deployment.storeOutage(700) },
    {
      name: 'the cloud does not report how machines are for a while',
      happen: ({ deployment }) => deployment.hideMachines('refused', hiddenMs),
    },
    {
      name: 'who asks how machines are gets no answer for a while',
      happen: ({ deployment }) => deployment.hideMachines('unanswered', 700),
    },
    {
      name: 'migrate',
      happen: ({ job }) => job.executeUpdate('migrate', { args: [{}] }).catch(() => undefined),
    },
    { name: BY_HAND, happen: ({ deployment }) => deployment.terminateAttempt() },
  ]
  const cancel = { name: CANCEL, happen: ({ job }: { job: JobHandle }) => job.cancel() }
  return Array.from({ length: dice.between(0, 2) }, () => ({
    ...(dice.chance(CANCEL_CHANCE) ? cancel : dice.oneOf(choices)),
    atMs: dice.between(0, HAPPENINGS_UNTIL_MS),
  }))
}

function endsOf(
  { provider, faults, happenings }: { provider: CloudProvider; faults: FaultText[]; happenings: Happening[] },
  { hasBudget }: { hasBudget: boolean },
): JobReason[] {
  // EC2 names the account as the cause of such an end, so that a second one is the account's too.
  const barred = faults.map((one) =>
    one.fault === 'launch-fails' && one.reason === 'Client.InternalError' ? (one.times ?? Infinity) : 0,
  )
  const mute = faults.filter(({ fault }) => provider.mute.includes(fault)).length + sum(barred)
  return [
    'completed',
    ...(happenings.some(({ name }) => name === CANCEL) ? (['cancelled'] as const) : []),
    // Two machines in a row that were unreachable are the network's fault, as far as a job can tell.
    ...(mute > 1 ? (['unreachable'] as const) : []),
    ...(hasBudget ? (['budget-reached', 'no-placement'] as const) : []),
  ]
}
