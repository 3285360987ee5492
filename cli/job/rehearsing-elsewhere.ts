import type { Submission } from '../../client/job/submit'
import { planThroughWorkers } from '../../client/job/plan'
import { CrucibleError } from '../../client/errors'
import { DEFAULT_TIMING, stoppingMs } from '../../core/time/timing'
import { formatUsd } from '../../core/money/money'
import { formatBackendChoice, type BackendChoice } from '../../core/offer'
import { HOUR_MS, formatDuration, MINUTE_MS } from '../../core/time/time'
import type { PlanReport } from '../../core/job/plan'
import { ruledOutInWords } from '../../core/job/ruled-out'
import { judge } from '../../rehearse/judge'
import { rehearse } from '../../rehearse/rehearsal'
import { INTERRUPTIONS_DEFAULT_ELSEWHERE } from '../../rehearse/moments'
import { readWorkerConfig } from '../../service/config'
import type { Cli } from '../cli'
import type { RehearseOptions } from '../commands/job/rehearse'
import { RehearsalJobsHost } from './rehearsal-jobs'
import { conclude, showWrapped } from './rehearsing'

/** Facts that only access to the machine's folders can check. */
const NOT_SEEN = [
  'interruptions in the middle of a save',
  'files that the program writes outside its checkpoint directory',
]
/** Time for a provider to end a machine that has stopped. */
const END_SLACK_MS = MINUTE_MS

/** Rehearses a job on a backend of the deployment, as two of its jobs. */
export async function rehearseElsewhere(
  cli: Cli,
  submission: Submission,
  {
    for: forMs,
    interruptions = INTERRUPTIONS_DEFAULT_ELSEWHERE,
    backend,
  }: RehearseOptions & { backend: BackendChoice },
): Promise<void> {
  const { spec } = submission
  const context = cli.context()
  const plan = await planThroughWorkers(context, {
    ...withoutLimits(spec),
    isInterruptible: backend.capacityType === 'spot' || spec.isInterruptible,
    backends: [backend],
  })
  const budgetMicroUsd = budgetOf(cli, submission, { plan, backend, forMs })
  const stopMs = stoppingMs({ ...DEFAULT_TIMING, ...readWorkerConfig(cli.environment).timing })
  const signal = cli.interruption()
  signal.addEventListener('abort', () =>
    cli.out.note('Ending the jobs of the rehearsal. Press Ctrl-C again to leave that to their deadline.'),
  )
  const beganAtMs = cli.now()
  const host = new RehearsalJobsHost(context, {
    submission,
    backend,
    budgetMicroUsd,
    interruptions,
    deadlineAtMs: beganAtMs + forMs + stopMs,
    endsWithinMs: stopMs + END_SLACK_MS,
    note: (text) => cli.out.note(cli.asCalled(text)),
    signal,
  })
  try {
    const seen = await rehearse({
      host,
      directory: spec.checkpoint.directory ?? null,
      forMs,
      interruptions,
      signal,
      now: () => cli.now(),
      say: (words) => cli.out.note(words),
    })
    await host.close()
    const { costMicroUsd } = host
    conclude(cli, {
      spec,
      report: judge(seen),
      beside: {
        backend: formatBackendChoice(backend),
        jobs: [...host.jobs.keys()],
        costMicroUsd,
        notSeen: NOT_SEEN,
      },
    })
    cli.out.line(`It cost ${formatUsd(costMicroUsd)}.`)
    showWrapped(cli.out, `Not checked on another machine: ${NOT_SEEN.join('; ')}.`)
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    await host.close()
  }
}

/** Returns the budget of the rehearsal; without one, refuses and shows the line to add. */
function budgetOf(
  cli: Cli,
  { spec: { name, budgetMicroUsd } }: Submission,
  { plan, backend, forMs }: { plan: PlanReport; backend: BackendChoice; forMs: number },
): number {
  const where = formatBackendChoice(backend)
  const [best] = plan.placements
  if (best === undefined) {
    const reasons = ruledOutInWords(plan.rejections).slice(0, 3).join('; ')
    throw new CrucibleError(
      'capacity',
      `No offer on ${where} for ${name} now${reasons === '' ? '' : `: ${reasons}`}.`,
      {
        hint: `See \`crucible plan\` with --backend ${where}.`,
      },
    )
  }
  const { type, priceMicroUsdPerHour, priceMaxMicroUsdPerHour = priceMicroUsdPerHour } = best.offer
  const forTime = Math.ceil((priceMaxMicroUsdPerHour * forMs) / HOUR_MS)
  const price = `${type} costs ${formatUsd(priceMicroUsdPerHour)}/h now`
  const time = formatDuration(forMs)
  if (budgetMicroUsd === undefined)
    throw new CrucibleError(
      'usage',
      `A rehearsal on ${where} needs a budget: ${price}, and ${time} cost at most ${formatUsd(forTime)}.`,
      { hint: `Set a limit, such as --budget ${dollarsAbove(forTime)}.` },
    )
  cli.out.note(
    `Rehearsing ${name} on ${where} for at most ${time}. Budget: ${formatUsd(budgetMicroUsd)}; ${price}.`,
  )
  return budgetMicroUsd
}

const MICRO_PER_CENT = 10_000

/** Twice as much, in whole cents, for the time that machines take to start and stop; unused budget is not spent. */
function dollarsAbove(microUsd: number): string {
  return ((Math.ceil((2 * microUsd) / MICRO_PER_CENT) || 1) / 100).toFixed(2)
}

/** Removes limits, which describe the whole training. */
function withoutLimits(spec: Submission['spec']): Submission['spec'] {
  const rest = { ...spec }
  delete rest.durationMs
  delete rest.durationOn
  delete rest.deadlineAtMs
  delete rest.budgetMicroUsd
  return rest
}
