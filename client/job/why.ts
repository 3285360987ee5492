import type { WhatIf } from '../../core/job/what-if'
import type { JobExplained, WhatIfAnswer } from '../../core/job/why'
import type * as service from '../../service/why'
import type { Context } from '../context'
import { CrucibleError } from '../errors'
import { findJob } from './find-job'
import { noSuchJob } from './read-view'
import { gapsInWords } from './view'

/**
 * Each decision about a job, explained from its record, or one of them. Throws `usage` for a decision that the job does not have, and
 * `not-found` without such a job.
 */
export async function explainDecisions(
  context: Context,
  meant: string,
  { decision }: { decision?: number } = {},
): Promise<JobExplained> {
  const { explainJob } = require('../../service/why') as typeof service
  const jobId = await findJob(context, meant)
  const { unreadable, ...explained } = await orThrow(
    context,
    meant,
    await explainJob(context.store, jobId, { decision }),
  )
  context.gaps.push(...[gapsInWords(unreadable)].filter((gap) => gap !== null))
  return explained
}

/** A recorded plan of a job, the last one if `decision` is missing, decided again from changed inputs. Nothing happens to the job. */
export async function decideWhatIf(
  context: Context,
  meant: string,
  { changes, decision }: { changes: readonly WhatIf[]; decision?: number },
): Promise<{ id: string; whatIf: WhatIfAnswer }> {
  const { decideAgain } = require('../../service/why') as typeof service
  const jobId = await findJob(context, meant)
  const answer = await decideAgain(context.store, jobId, { decision, changes })
  return { id: jobId, whatIf: await orThrow(context, meant, answer) }
}

async function orThrow<T extends object>(
  context: Context,
  meant: string,
  answer: T | service.Unexplained | undefined,
): Promise<T> {
  if (answer === undefined) throw await noSuchJob(context, meant)
  if (!('problem' in answer)) return answer
  const { problem, remedy } = answer
  throw new CrucibleError('usage', sentence(problem), { hint: sentence(remedy) })
}

function sentence(text: string): string {
  const whole = `${text.charAt(0).toUpperCase()}${text.slice(1)}`
  return /[.!?]$/.test(whole) ? whole : `${whole}.`
}
