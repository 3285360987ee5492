import type { JobStatus } from '../../core/messages'
import { SECOND_MS } from '../../core/time/time'
import type { Span } from '../kit/invariants'
import { patient } from '../support/patience'
import {
  boughtOnce,
  oneForEach,
  endsSeen,
  leftAtLast,
  leftToSweep,
  machinesAtWork,
  onlyTheIllEnded,
  otherBreaches,
  type Aftermath,
} from '../clouds/invariants'
import { listHandOvers } from '../../storage/hand-overs'
import { LOOK_MS } from '../clouds/world'
import type { Life } from './lives'
import type { CloudGround } from '../clouds/cloud'

/** What must not be, by the columns of the table; each in words. */
export interface Verdict {
  /** Paid resources without an owner, after one garbage collection. */
  unowned: string[]
  /** Machines beyond the one of an attempt. */
  doubleLaunches: string[]
  /** Attempts at work at once. */
  doubleAttempts: string[]
  /** Attempts that were well, and that ended by nothing but our own trouble. */
  healthyKilled: string[]
  /** Whatever an undisturbed life would not show. */
  other: string[]
}

export const FLAWLESS: Verdict = {
  unowned: [],
  doubleLaunches: [],
  doubleAttempts: [],
  healthyKilled: [],
  other: [],
}

export const VERDICTS: Readonly<Record<keyof Verdict, string>> = {
  unowned: 'resources without an owner after one garbage collection',
  doubleLaunches: 'double launches',
  doubleAttempts: 'double attempts',
  healthyKilled: 'healthy jobs killed',
  other: 'other breaches',
}

export function breachesIn(verdict: Verdict): string[] {
  return (Object.keys(VERDICTS) as (keyof Verdict)[]).flatMap((name) =>
    verdict[name].map((words) => `${VERDICTS[name]}: ${words}`),
  )
}

/** What a person may wait for a machine to be watched again. */
export const ATTACHED_WITHIN_MS = patient(30_000)

export function seconds(ms: number): string {
  return `${(ms / SECOND_MS).toFixed(1)} s`
}

/** Down from then on for that long, and taken up in time. */
export function downtimeOf(fromMs: number, downMs = 0): Span {
  return { fromMs, toMs: fromMs + downMs + ATTACHED_WITHIN_MS }
}

export interface Aftermaths {
  life: Pick<Life, 'attempts' | 'ends' | 'isEndedByHand' | 'isOrphaned' | 'isTokenless'>
  ground: CloudGround
  status: JobStatus
  left: Aftermath['left']
  isOver: boolean
  downtimes: readonly Span[]
}

/** Judges a run that is over and swept, by what the cloud knows. */
export async function judge(at: Aftermaths): Promise<Verdict> {
  const { life, ground: deployment, status, left, isOver, downtimes } = at
  const after: Aftermath = {
    deployment,
    status,
    left,
    downtimes,
    instances: deployment.cloud.instances(),
    world: {
      // Where this computer is busy its owner's wish may come too late.
      mayEnd: [life.ends, 'completed'],
      isSureToStrike: false,
      isEndedByHand: life.isEndedByHand === true,
      lagMs: LOOK_MS + deployment.provider.lagMs,
    },
  }
  const isOrphaned = life.isOrphaned === true
  return {
    unowned: [
      ...leftAtLast(after),
      ...(await deployment.provider.remains(deployment.cloud)),
      ...(await listHandOvers(deployment.storage.store)).map(({ key }) => `the hand-over ${key} is left`),
    ],
    // Without tokens each send is another request.
    doubleLaunches: life.isTokenless === true ? oneForEach(after) : boughtOnce(after),
    doubleAttempts: machinesAtWork(after),
    healthyKilled: isOrphaned ? [] : [...(await onlyTheIllEnded(after)), ...attemptsBeyond(life, after)],
    other: !isOver
      ? [`the job is not over: ${status.message}`]
      : isOrphaned
        ? []
        : [...leftToSweep(after), ...endsSeen(after), ...(await otherBreaches(after))],
  }
}

/**
 * A crash costs time, and no attempt. A provider without idempotency is the exception: a worker that dies between the mark of a send and its
 * outcome may have sent nothing, so that the attempt ends without a machine, and without cost.
 */
function attemptsBeyond(
  { attempts, isTokenless }: Aftermaths['life'],
  { status, instances, deployment: { provider } }: Aftermath,
): string[] {
  const bought = new Set(instances.map(({ tags }) => provider.attemptOf(tags)))
  const mayBeLost = provider.losesSends || isTokenless === true
  const lost = status.attempts.filter(({ attemptId }) => mayBeLost && !bought.has(attemptId)).length
  if (status.attemptsTotal - lost <= attempts) return []
  const ends = status.attempts.map(({ number, state, reason }) => `${number} ${state} (${reason})`)
  return [`${status.attemptsTotal} attempts in place of ${attempts}: ${ends.join(', ')}`]
}
