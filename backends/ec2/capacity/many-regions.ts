import type { Failure } from '../../../core/failure'
import { formatDuration } from '../../../core/time/time'
import { unlessAborted } from '../../calls'
import { isKeyRefused } from '../check/regions'
import { ec2Error } from '../errors'

/** Answers of several Regions. */
export interface RegionAnswers<T> {
  answers: { region: string; value: T }[]
  unanswered: Unanswered[]
}

/** A Region without an answer, and why. */
export interface Unanswered {
  region: string
  failure: Failure
  /** The account has not enabled it. */
  isClosed: boolean
}

export interface AskOptions {
  signal: AbortSignal
  /** Time limit of `signal`, for the message about a Region that took longer. */
  limitMs: number
  /** A Region has answered or failed. */
  onSettled?: (settled: number) => void
}

/** Asks all Regions at once: it takes as long as the slowest, and one that fails is named without losing the others. */
export async function askRegions<T>(
  regions: readonly string[],
  ask: (region: string) => Promise<T>,
  { signal, limitMs, onSettled }: AskOptions,
): Promise<RegionAnswers<T>> {
  let settledCount = 0
  const answers: RegionAnswers<T>['answers'] = []
  const failures: { region: string; failure: Failure }[] = []
  await Promise.all(
    regions.map(async (region) => {
      try {
        answers.push({ region, value: await unlessAborted(signal, ask(region)) })
      } catch (error) {
        failures.push({ region, failure: failureOf(error, { region, signal, limitMs }) })
      }
      onSettled?.((settledCount += 1))
    }),
  )
  const order = (a: { region: string }, b: { region: string }): number =>
    regions.indexOf(a.region) - regions.indexOf(b.region)
  answers.sort(order)
  failures.sort(order)
  // Keys that one Region accepts are valid: another that refuses them is not enabled.
  const areKeysGood = answers.length > 0 || failures.some(({ failure }) => failure.class !== 'auth')
  return { answers, unanswered: failures.map((each) => unanswered(each, areKeysGood)) }
}

function failureOf(
  reason: unknown,
  { region, signal, limitMs }: { region: string; signal: AbortSignal; limitMs: number },
): Failure {
  if (!signal.aborted) return ec2Error(reason).failure
  return {
    class: 'transient',
    code: 'Timeout',
    message: `${region} did not answer within ${formatDuration(limitMs)}`,
    hint: 'Allow more time with --timeout, or leave the Region out with --regions.',
  }
}

function unanswered(
  { region, failure }: { region: string; failure: Failure },
  areKeysGood: boolean,
): Unanswered {
  const isClosed = areKeysGood && isKeyRefused(`${failure.code ?? ''} ${failure.message}`)
  return isClosed ? closedRegion(region) : { region, failure, isClosed }
}

/** A Region that the account has not enabled. */
export function closedRegion(region: string): Unanswered {
  return {
    region,
    isClosed: true,
    failure: {
      class: 'auth',
      code: 'RegionNotEnabled',
      message: `${region} is not enabled for this account`,
      hint: `Enable it: \`aws account enable-region --region-name ${region}\`.`,
    },
  }
}
