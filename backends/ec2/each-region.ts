import type { Backend, CallContext, LookContext } from '../backend'
import { limitedTo } from '../calls'
import { formatDuration } from '../../core/time/time'
import { transient } from './errors'
import { regionOfPlace } from './market/region-names'

export interface Look {
  regions: readonly string[]
  at: (region: string) => Backend
  ctx: LookContext
  /** A Region that takes longer counts as unanswered. */
  limitMs?: number
}

type Ask<T> = (backend: Backend, region: string, ctx: CallContext) => Promise<T>

/**
 * Asks every Region in the settings and those in `ctx.alsoAt`, or only those in `ctx.within`. A Region that fails is reported to
 * `ctx.unseen`; the error is thrown if no Region of the settings answers, or if there is no `ctx.unseen`.
 */
export async function inEach<T>(
  { regions, at, ctx, limitMs }: Look,
  ask: Ask<T>,
): Promise<{ region: string; answer: T }[]> {
  const { within, alsoAt = [], unseen } = ctx
  const named = (within ?? []).map((place) => regionOfPlace(place)).filter((one) => one !== undefined)
  const asked = [...new Set(named.length > 0 ? named : [...regions, ...alsoAt])]
  const settled = await Promise.allSettled(
    asked.map((region) =>
      patiently({ region, ctx, limitMs }, (signal) => ask(at(region), region, { signal })),
    ),
  )
  if (ctx.signal.aborted) throw transient('the caller stopped waiting')
  const answers = settled.flatMap((result, index) =>
    result.status === 'fulfilled' ? [{ region: asked[index]!, answer: result.value }] : [],
  )
  const failures = settled.flatMap((result, index) =>
    result.status === 'rejected' ? [{ region: asked[index]!, error: result.reason as unknown }] : [],
  )
  const hasListed = answers.some(({ region }) => regions.includes(region))
  const [firstFailure] = failures
  if (firstFailure !== undefined && (unseen === undefined || !hasListed)) throw firstFailure.error
  for (const { region, error } of failures) unseen?.(region, error)
  return answers
}

async function patiently<T>(
  { region, ctx, limitMs }: { region: string; ctx: CallContext; limitMs: number | undefined },
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (limitMs === undefined) return ask(ctx.signal)
  const within = limitedTo(limitMs, ctx.signal)
  try {
    return await ask(within)
  } catch (error) {
    if (!within.aborted || ctx.signal.aborted) throw error
    throw transient(`${region} did not answer within ${formatDuration(limitMs)}`)
  }
}
