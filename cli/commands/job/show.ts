import type { Command } from 'commander'
import { findJob } from '../../../client/job/find-job'
import type { AttemptView, JobView, RecoveryView, TroubleView } from '../../../client/job/job-view'
import { readView } from '../../../client/job/read-view'
import { watchJob } from '../../../client/job/watch'
import { viewWithoutStore } from '../../../client/job/without-store'
import { trackerName } from '../../../core/beat-parts'
import { formatUsd } from '../../../core/money/money'
import { formatDuration, formatInstant } from '../../../core/time/time'
import type { Cli } from '../../cli'
import { tellGaps } from '../../kit/gaps'
import { continuationLines } from '../../job/continuation'
import { examples } from '../../examples'
import type { Output } from '../../kit/output'
import {
  age,
  asKnown,
  attemptReason,
  attemptTime,
  checkpointState,
  count,
  knownStep,
  lossInWords,
  NOT_LIVE,
  NOTHING,
  plural,
  progressInWords,
  savingInWords,
  stateInColour,
  stepInWords,
  usd,
} from '../../kit/words'

export function define(command: Command, cli: Cli): void {
  command
    .argument('<job>', 'id, beginning of an id, or name')
    .option('-w, --watch', 'refresh on every change, until the job ends')
    .addHelpText(
      'after',
      examples(
        ['crucible show char-lm', 'the job of that name'],
        ['crucible show job-3f --watch', 'the job with this id prefix, live'],
        ['crucible show job-3f --json | jq .state', 'its state'],
      ),
    )
    .action((job: string, options: { watch?: boolean }) => show(cli, job, options.watch === true))
}

async function show(cli: Cli, meant: string, isWatched: boolean): Promise<void> {
  const context = cli.context()
  if (!isWatched) {
    const view = await findJob(context, meant)
      .then((jobId) => readView(context, jobId))
      .catch((error: unknown) => viewWithoutStore(context, meant, error))
    tellGaps(cli, view.incomplete === null ? [] : [view.incomplete])
    cli.out.json(view)
    if (!view.isLive) cli.saysUnknown()
    return renderWhole(cli, view)
  }
  let last = ''
  const jobId = await findJob(context, meant)
  for await (const view of watchJob(context, jobId, { signal: cli.interruption() })) {
    cli.out.jsonLine(view)
    if (cli.out.isTerminal) {
      cli.out.clear()
      renderWhole(cli, view)
    } else {
      const line = briefly(view)
      if (line !== last) cli.out.line(line)
      last = line
    }
  }
}

/** Columns of a fact's name. */
const FACT_INDENT = 12

function renderWhole(cli: Cli, view: JobView): void {
  render(cli.out, view, cli.now())
  const lines = continuationLines(cli, view)
  for (const line of lines.length === 0 ? [] : ['', ...lines]) cli.out.line(line)
}

function briefly(view: JobView): string {
  const { state, reason, message, progress } = view
  return asKnown(view, `${state} (${reason}) ${progressInWords(progress)} ${message}`)
}

/** A job as a person sees it. */
export function render(out: Output, view: JobView, nowMs: number): void {
  const { paint } = out
  out.line(`${paint.bold(view.name)}  ${view.id}  ${stateInColour(view.state, paint)} (${view.reason})`)
  out.prose(view.message)
  if (view.trouble !== null) out.prose(paint.yellow(troubleInWords(view.trouble, nowMs)))
  if (!view.isLive) out.prose(paint.yellow(NOT_LIVE))
  out.line()
  for (const [name, value] of facts(view, { nowMs, paint }))
    out.prose(`  ${paint.dim(name.padEnd(10))}  ${value}`, FACT_INDENT)
  if (view.attempts.length > 0) {
    out.line()
    out.table(
      ['#', 'REQUESTED', 'MACHINE', 'STATE', 'REASON', 'TIME', 'COST', 'FROM', 'SAVED', 'LOST'],
      view.attempts.map((attempt) => attemptRow(attempt, nowMs)),
      {
        right: ['TIME', 'COST', 'FROM', 'SAVED', 'LOST'],
        flexible: ['REASON', 'MACHINE'],
        optional: ['FROM', 'SAVED', 'REQUESTED', 'LOST', 'TIME'],
      },
    )
  }
  if (view.recoveries.length > 0) {
    out.line()
    out.table(['RECOVERY', 'AFTER', ...PARTS], view.recoveries.map(recoveryRow), {
      right: PARTS,
      optional: ['EXCL. BOOT', 'DETECT', 'RESTORE', 'DRAIN'],
    })
  }
}

/** Parts of a recovery in order, then the total, and the total without the boot. */
const PARTS = ['DETECT', 'DRAIN', 'ACQUIRE', 'BOOT', 'RESTORE', 'FIRST STEP', 'TOTAL', 'EXCL. BOOT']

function recoveryRow(recovery: RecoveryView): string[] {
  const { from, to, cause, detectMs, drainMs, acquireMs, bootMs, restoreMs, firstStepMs } = recovery
  const parts = [detectMs, drainMs, acquireMs, bootMs, restoreMs, firstStepMs]
  return [
    `${from} to ${to ?? NOTHING}`,
    cause,
    ...[...parts, recovery.totalMs, recovery.overheadMs].map((ms) =>
      ms === null ? NOTHING : formatDuration(ms),
    ),
  ]
}

function troubleInWords({ message, tries, nextTryAtMs }: TroubleView, nowMs: number): string {
  // A workflow after a flood of signals: nothing is tried.
  if (tries === 0) return `Trouble: ${message}`
  const next =
    nextTryAtMs === null || nextTryAtMs <= nowMs ? '' : `; next try in ${formatDuration(nextTryAtMs - nowMs)}`
  return `Trouble (tried ${plural(tries, 'time')}${next}; \`crucible retry\` retries now): ${message}`
}

function basisInWords(basis: JobView['cost']['remainingBasis']): string {
  switch (basis) {
    case 'pace':
      return ' at its present pace'
    case 'forecast':
      return ' as planned'
    case 'assumed':
      return ' with an assumed duration'
    case null:
      return ''
  }
}

function facts(
  view: JobView,
  { nowMs, paint }: { nowMs: number; paint: Output['paint'] },
): [string, string][] {
  const { cost, progress, deadlineAtMs } = view
  const saving = view.attempts.at(-1)?.saving ?? null
  const leaveSinceMs = view.attempts.at(-1)?.rebalanceAtMs ?? null
  const loss = progress?.loss == null ? '' : `, loss ${lossInWords(progress.loss)}`
  const toGo =
    cost.estimatedRemainingMicroUsd === null
      ? ''
      : `, about ${formatUsd(cost.estimatedRemainingMicroUsd)} left${basisInWords(cost.remainingBasis)}`
  const budget = cost.budgetMicroUsd === null ? '' : `, budget ${formatUsd(cost.budgetMicroUsd)}`
  const all: [string, string | undefined][] = [
    ['owner', view.owner],
    ['rehearsal', view.isRehearsal ? 'its machines are interrupted on purpose' : undefined],
    ['submitted', `${formatInstant(view.submittedAtMs)} (${age(view.submittedAtMs, nowMs)} ago)`],
    ['ended', view.endedAtMs === null ? undefined : formatInstant(view.endedAtMs)],
    ['took', view.endedAtMs === null ? undefined : formatDuration(view.endedAtMs - view.submittedAtMs)],
    ['progress', `${progressInWords(progress)}${loss}`],
    ['cost', `${cost.spentMicroUsd === null ? 'unknown' : formatUsd(cost.spentMicroUsd)}${toGo}${budget}`],
    ['deadline', deadlineAtMs === null ? undefined : formatInstant(deadlineAtMs)],
    ['saving', saving === null ? undefined : savingInWords(saving)],
    ['checkpoint', checkpointInWords(view.checkpoints)],
    ['restored', restoredInWords(view.attempts.at(-1))],
    ...view.trackers.map((run): [string, string] => ['tracked', trackedInWords(run)]),
    ['warning', view.warning === null ? undefined : paint.yellow(view.warning.text)],
    [
      'warning',
      leaveSinceMs === null
        ? undefined
        : `the provider may interrupt this machine soon; warned since ${formatInstant(leaveSinceMs)}`,
    ],
    // Later, `crucible why` and the events have the reasons.
    ['chosen for', view.state === 'provisioning' ? view.placementReasons[0] : undefined],
    ['Temporal', view.uiUrl ?? undefined],
  ]
  return all.filter((fact): fact is [string, string] => fact[1] !== undefined)
}

function attemptRow(attempt: AttemptView, nowMs: number): string[] {
  const { realised, restoredFrom, checkpoint, stepsLost, phase, state } = attempt
  return [
    String(attempt.number),
    `${attempt.backend} ${attempt.capacityType}`,
    realised === null ? NOTHING : `${realised.capacityType} ${realised.type}`,
    state,
    phase === null || phase === 'running' ? attemptReason(attempt) : phase,
    attemptTime(attempt, nowMs),
    `${usd(attempt.costMicroUsd)}${attempt.costBasis === 'dearest' ? ' at most' : ''}`,
    stepOf(knownStep(restoredFrom)),
    stepOf(knownStep(checkpoint)),
    stepOf(stepsLost),
  ]
}

function checkpointInWords({ newest, state, count }: JobView['checkpoints']): string | undefined {
  if (newest === null) return undefined
  const proof = state === null ? '' : `, ${checkpointState(state)}`
  return `${stepInWords(newest)}${proof}, ${count} kept`
}

function trackedInWords({ kind, runId, url }: JobView['trackers'][number]): string {
  return `${trackerName(kind)} run ${runId}${url === undefined ? '' : `, ${url}`}`
}

function restoredInWords(last: AttemptView | undefined): string | undefined {
  if (last?.restoredFrom == null) return undefined
  const why = last.restoredBecause === null ? '' : `: ${last.restoredBecause}`
  return `${stepInWords(last.restoredFrom)} of attempt ${last.restoredFrom.attempt}${why}`
}

function stepOf(step: number | null | undefined): string {
  return step == null ? NOTHING : count(step)
}
