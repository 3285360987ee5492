import { dirname, resolve } from 'node:path'
import { CrucibleError } from '../../client/errors'
import { formatProblem } from '../../client/job/file'
import { preflight, unknownBackends } from '../../client/job/preflight'
import type { ScheduleSubmission } from '../../client/retraining/schedules'
import type * as registry from '../../backends/registry'
import { parseRetrainFile } from '../../intake/retrain'
import type { Cli } from '../cli'
import { readText } from '../job/read-job'

/** Reads a retraining file. Throws `usage` with all problems at once, each with its position. */
export async function readRetrainFile(cli: Cli, file: string): Promise<ScheduleSubmission> {
  const read = parseRetrainFile(await readText(file, 'retraining file'), { fileName: file, nowMs: cli.now() })
  if ('problems' in read) {
    throw new CrucibleError('usage', read.problems.map(formatProblem).join('\n'), {
      details: { problems: read.problems },
    })
  }
  const { retrain } = read
  return { retrain, directory: retrain.workdir === null ? null : resolve(dirname(file), retrain.workdir) }
}

/** Reads a retraining file, refuses jobs with known errors, and notes possible ones. */
export async function readCheckedRetrain(cli: Cli, file: string): Promise<ScheduleSubmission> {
  const submission = await readRetrainFile(cli, file)
  const { BACKENDS } = require('../../backends/registry') as typeof registry
  const { retrain, directory } = submission
  // Secrets are checked separately, for all jobs together.
  const spec = { ...retrain.sample, secrets: [] }
  const named = (retrain.spec.capacity?.steps ?? []).flatMap((step) =>
    step.kind === 'unreserved' ? step.backends.map(({ backend }) => backend) : [step.backend],
  )
  const problems = unknownBackends(named, Object.keys(BACKENDS))
  if (problems.length > 0) throw new CrucibleError('usage', `capacity: ${problems.join('\n')}`)
  const warnings = await preflight(cli.context(), { spec, directory }, Object.keys(BACKENDS))
  for (const warning of warnings) cli.out.warn(warning)
  return submission
}
