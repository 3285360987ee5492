import type { DecideInput, PlanInput } from '../../core/activities'
import { leftOfBudget } from '../../core/money/budget'
import { resourcesInWords, trainingTimeInWords } from '../../core/job/words'
import type { AttemptEnd } from '../../core/job/ledger'
import { formatUsd } from '../../core/money/money'
import { formatBackendChoice } from '../../core/offer'
import { silentName, type BackendAnswer, type PlanFacts } from '../../core/job/plan'
import { holdInWords, idleInWords } from '../../core/reservation/hold'
import { formatBytes, wantsGpu } from '../../core/resources'
import { formatDuration, formatInstant } from '../../core/time/time'
import type { DecisionInput } from '../../core/job/why'
import { jobsInWords } from '../plan/work'

type Line = [name: string, text: string | undefined]

function told(lines: readonly Line[]): DecisionInput[] {
  return lines.flatMap(([name, text]) => (text === undefined || text === '' ? [] : [{ name, text }]))
}

/** Inputs of a plan; a damaged record may have only some of them. */
export function planInputs(
  input: Partial<PlanInput>,
  {
    facts,
    answers,
  }: { facts?: Omit<PlanFacts, 'answers'> | undefined; answers?: readonly BackendAnswer[] | undefined },
): DecisionInput[] {
  const spec = input.resolved?.spec
  const nowMs = facts?.nowMs
  return told([
    ['wishes', spec && wishesOf(spec)],
    ['resources', spec && resourcesInWords(spec.resources)],
    ['duration', spec && (trainingTimeInWords(spec) ?? 'not stated')],
    ['family of work', spec && wantsGpu(spec.resources) ? (spec.workFamily ?? 'not known') : undefined],
    ['measured speeds', facts?.ownRatios && ratiosOf(facts.ownRatios)],
    ['measured memory', facts?.measuredMemory && memoryOf(facts.measuredMemory)],
    ['deadline', deadlineOf(input, nowMs)],
    ['budget', budgetOf(input)],
    ['migration', input.target && `its owner requested ${formatBackendChoice(input.target)}`],
    ['start', input.startsInMs ? `after a pause of ${formatDuration(input.startsInMs)}` : undefined],
    ['work done', doneOf(input, facts)],
    ['offers', answers && nowMs !== undefined ? offersOf(answers, nowMs) : undefined],
    ['owner', input.resolved?.owner],
    ['reserved', answers && heldOf(answers)],
    ['no answer', facts?.silentBackends.map((one) => `${silentName(one)}: ${one.reason}`).join('; ')],
    ['quotas', answers && quotasOf(answers)],
    ['avoided', input.avoid && avoidedOf(input.avoid)],
    ['store', facts?.storePrice && storeOf(facts.storePrice)],
    [
      'data',
      facts?.inputSizes?.map(({ source, sizeBytes }) => `${source}: ${formatBytes(sizeBytes)}`).join(', '),
    ],
  ])
}

/** Describes each held reservation: `res-ranker of alice: 1 of 2 free`. */
function heldOf(answers: readonly BackendAnswer[]): string | undefined {
  const held = answers.flatMap(({ offers }) => offers).filter(({ reservation }) => reservation?.hold)
  if (held.length === 0) return undefined
  return held
    .map((offer) => {
      const { reservation, reservationId } = offer
      const { free, total } = reservation!
      const parts = [`${free} of ${total} places free`, holdInWords(offer), idleInWords(offer)]
      return `${reservationId}: ${parts.filter(Boolean).join(', ')}`
    })
    .join('; ')
}

function storeOf(price: NonNullable<PlanFacts['storePrice']>): string {
  return price === 'unknown' ? 'its prices are unknown and not included' : `charges as ${price.name}`
}

function wishesOf(spec: NonNullable<PlanInput['resolved']>['spec']): string {
  const { optimize, isInterruptible, backends, regions, reservation, priceMaxMicroUsdPerHour: most } = spec
  return [
    `best ${optimize === 'balanced' ? 'balance of cost and time' : optimize}`,
    isInterruptible ? 'interruptible' : 'not interruptible',
    ...(backends.length === 0 ? [] : [`only on ${backends.map(formatBackendChoice).join(', ')}`]),
    ...(regions === undefined ? [] : [`only in ${regions.join(', ')}`]),
    ...(reservation === undefined ? [] : [`only in the reservation ${reservation}`]),
    ...(most === undefined ? [] : [`at most ${formatUsd(most)} an hour`]),
  ].join(', ')
}

/** `14.2 GiB of each of 2 GPUs in job train-x7` */
function memoryOf({ jobId, gpus, peakGiB }: NonNullable<PlanFacts['measuredMemory']>): string {
  return `${Math.round(peakGiB * 10) / 10} GiB ${gpus === 1 ? 'of the GPU' : `of each of ${gpus} GPUs`} in job ${jobId}`
}

/** `V100 0.41 times the speed of A100 on 3 of your jobs` */
function ratiosOf(ratios: NonNullable<PlanFacts['ownRatios']>): string {
  return ratios
    .map(
      ({ accelerator, than, factor, jobs }) =>
        `${accelerator} ${Number(factor.toPrecision(2))} times the speed of ${than} on ${jobsInWords(jobs)}`,
    )
    .join('; ')
}

function deadlineOf({ deadlineAtMs }: Partial<PlanInput>, nowMs: number | undefined): string | undefined {
  if (deadlineAtMs === undefined) return undefined
  const left = nowMs === undefined ? '' : `, ${formatDuration(deadlineAtMs - nowMs)} later`
  return `${formatInstant(deadlineAtMs)}${left}`
}

function budgetOf({ budgetMicroUsd, ledger }: Partial<PlanInput>): string | undefined {
  const spent = ledger?.spentMicroUsd ?? 0
  const left = leftOfBudget(budgetMicroUsd, spent)
  if (budgetMicroUsd === undefined || left === undefined)
    return spent > 0 ? `none; ${formatUsd(spent)} spent before` : undefined
  return `${formatUsd(budgetMicroUsd)}, ${formatUsd(spent)} of it spent before, ${formatUsd(left)} left`
}

function doneOf(
  { attempt, ledger }: Partial<PlanInput>,
  facts: Pick<PlanFacts, 'leftShare' | 'savedBefore'> | undefined,
): string | undefined {
  if (attempt === undefined || attempt === 1) return undefined
  const left = facts?.leftShare
  const share = left === undefined ? 'the remaining work is unknown' : `${percent(left)} of the work is left`
  const saved = facts?.savedBefore
  const checkpoint =
    saved === undefined ? 'no checkpoint' : `newest checkpoint ${formatBytes(saved.totalBytes)}`
  const lost = ledger?.interruptions ?? 0
  const interruptions = lost === 0 ? [] : [`${lost} interruption${lost === 1 ? '' : 's'} so far`]
  return [`attempt ${attempt}`, share, checkpoint, ...interruptions].join(', ')
}

/** `26 of ec2 (prices 5s to 12s old), 4 of local` */
function offersOf(answers: readonly BackendAnswer[], nowMs: number): string {
  return answers
    .map(({ backend, offers }) => {
      const ages = offers
        .filter(({ priceSource }) => priceSource.kind !== 'configured')
        .map(({ priceSource }) => Math.max(0, nowMs - priceSource.observedAtMs))
      if (ages.length === 0) return `${offers.length} of ${backend}`
      const [newest, oldest] = [Math.min(...ages), Math.max(...ages)].map(formatDuration)
      return `${offers.length} of ${backend} (prices ${newest === oldest ? newest : `${newest} to ${oldest}`} old)`
    })
    .join(', ')
}

function quotasOf(answers: readonly BackendAnswer[]): string | undefined {
  const offers = answers.flatMap((answer) => answer.offers)
  const without = offers.filter(({ availability }) => availability === 'no-quota').length
  return without === 0 ? undefined : `${without} of ${offers.length} offers exceed a quota of the account`
}

const AVOIDED_MAX = 5

const WHY_AVOIDED = {
  capacity: 'had no capacity',
  quota: 'was refused for missing quota',
  preference: 'is used only as a last resort',
  interruption: 'interrupted this job',
} as const

function avoidedOf(avoid: PlanInput['avoid']): string {
  const shown = avoid
    .slice(0, AVOIDED_MAX)
    .map(
      ({ offerKey, why, forMs }) =>
        `${offerKey.replace(/\/$/, '')} ${WHY_AVOIDED[why]} (for another ${formatDuration(forMs)})`,
    )
  const more = avoid.length > AVOIDED_MAX ? [`and ${avoid.length - AVOIDED_MAX} more`] : []
  return [...shown, ...more].join('; ')
}

/** Returns the inputs of the decision after an attempt. */
export function verdictInputs(
  facts: Partial<Omit<DecideInput, 'jobId' | 'recordSeq' | 'attempt'>>,
): DecisionInput[] {
  const { end, drainReason, ledger, policy, hasSaved, budget } = facts
  return told([
    ['end', end && endInWords(end)],
    ['request', drainReason == null ? undefined : `the job asked it to stop: ${drainReason}`],
    [
      'allowances',
      ledger &&
        policy &&
        [
          `interruptions before: ${allowed(ledger.interruptions, policy.interruptionsMax)}`,
          `failures of the program: ${allowed(ledger.failures, policy.failuresMax)}`,
          `failures of unknown cause in a row: ${allowed(ledger.unclassified, policy.unclassifiedMax)}`,
        ].join(', '),
    ],
    [
      'saved',
      hasSaved === undefined ? undefined : hasSaved ? 'it saved a checkpoint' : 'it saved no checkpoint',
    ],
    ['budget', budget && `${formatUsd(budget.leftMicroUsd)} left`],
  ])
}

function allowed(used: number, most: number): string {
  return most === 0 ? 'none is allowed' : `${used} of ${most} allowed`
}

function endInWords(end: AttemptEnd): string {
  switch (end.kind) {
    case 'succeeded':
      return 'the program succeeded'
    case 'stopped':
      return `the attempt stopped: ${end.by}`
    case 'failed':
      return `${end.failure.class}${end.isLaunched ? '' : ', before a machine was bought'}: ${end.failure.message}`
  }
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}
