import { CODES } from '../../core/errors'
import { failureFrom, inWords } from '../../core/failure'
import type { Decision } from '../../core/job/ledger'
import { copying } from '../activities'
import { forever, unlessOver } from '../forever'
import type { JobRun } from './run'

type Finish = Extract<Decision, { kind: 'finish' }>

/**
 * Copies the checkpoint from which the job resumes into the job's folder, before its first attempt. Waits while the store has
 * trouble; the job ends here only if no checkpoint is left. A stopping job does not wait for the copy.
 */
export async function copyCheckpoint(run: JobRun): Promise<Finish | undefined> {
  const { jobId, source, carry } = run.input
  if (source === undefined || carry !== undefined) return undefined
  const { step } = source.checkpoint
  run.page.say('planning', `Copying the checkpoint of step ${step} of ${source.jobId}.`)
  const input = { jobId, source, recordSeq: run.nextSeq() }
  const copy = async (): Promise<Finish | undefined> => {
    try {
      run.page.copied(await copying.copyCheckpoint(input))
      return undefined
    } catch (error) {
      const failure = failureFrom(error)
      if (failure.code !== CODES.noCheckpoint) throw error
      return { kind: 'finish', state: 'failed', reason: 'invalid', message: inWords(failure) }
    }
  }
  const end = await unlessOver(
    () => run.drains.ending !== null,
    () => forever(copy, run.page),
  )
  // An error of a copy that the job no longer waits for.
  run.page.trouble(undefined)
  return end
}
