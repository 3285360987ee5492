/** Output of `crucible schedule`. */
import type { ScheduleHistory, ScheduleSummary, ScheduleView } from '../../client/retraining/schedule-runs'
import { warningsOf, type ScheduleCreated } from '../../client/retraining/schedules'
import { formatUsd } from '../../core/money/money'
import { howToApprove } from '../../core/retraining/requests'
import type { RetrainResult, RetrainStatus } from '../../core/retraining/run'
import type { PromotedModel, RetrainSpec } from '../../core/retraining/retraining'
import { nextRuns, type ScheduledRun } from '../../core/retraining/run-dates'
import { formatDuration, formatInstant } from '../../core/time/time'
import { formatInZone } from '../../core/time/zones'
import type { RecordedRun } from '../../storage/schedules'
import type { Cli } from '../cli'
import { age, NOTHING, plural } from '../kit/words'

export function showNext(cli: Cli, spec: RetrainSpec, count: number): void {
  const { out } = cli
  const { runs, skipped } = nextRuns(spec, cli.now(), count)
  const warnings = warningsOf(spec, runs)
  out.json({ name: spec.name, zone: spec.calendar.zone, runs, skipped, warnings })
  table(cli, spec, runs)
  for (const { nominal, reason } of skipped) out.line(`${nominal}: no run. ${reason}`)
  for (const warning of warnings) out.warn(warning)
}

function table(cli: Cli, spec: RetrainSpec, runs: readonly ScheduledRun[]): void {
  const { zone } = spec.calendar
  cli.out.table(
    ['WINDOW OPENS', 'IN', 'RUN BEGINS', 'DATA FROM', 'TO'],
    runs.map(({ opensAtMs, startsAtMs, window }) => [
      formatInZone(opensAtMs, zone),
      formatDuration(opensAtMs - cli.now()).split(' ')[0]!,
      formatInstant(startsAtMs).slice(0, 16).replace('T', ' ') + ' UTC',
      window.start,
      window.end,
    ]),
    { right: ['IN'] },
  )
}

export function showCreated(cli: Cli, spec: RetrainSpec, created: ScheduleCreated): void {
  const { out } = cli
  const { name, isNew, revision, runs, skipped, warnings } = created
  out.json({ ...created })
  out.line(
    isNew
      ? `Schedule ${out.paint.bold(name)}, revision ${revision}. Its next dates:`
      : `Schedule ${out.paint.bold(name)} already matches the file (revision ${revision}). Its next dates:`,
  )
  table(cli, spec, runs)
  for (const { nominal, reason } of skipped) out.line(`${nominal}: no run. ${reason}`)
  for (const warning of warnings) out.warn(warning)
}

export function showList(cli: Cli, schedules: readonly ScheduleSummary[], incomplete: string | null): void {
  const { out } = cli
  out.json({ schedules, incomplete })
  if (schedules.some(({ state }) => state === 'unknown')) cli.saysUnknown()
  if (schedules.length === 0 && incomplete !== null) return
  if (schedules.length === 0)
    return out.line(
      cli.asCalled('No schedules yet. Create one with `crucible schedule create retrain.yaml`.'),
    )
  out.table(
    ['SCHEDULE', 'STATE', 'NEXT WINDOW', 'LAST RUN', 'RESULT', 'OWNER'],
    schedules.map(({ name, state, next, last, owner }) => [
      name,
      state,
      next === null
        ? NOTHING
        : `${next.date}, in ${formatDuration(next.opensAtMs - cli.now()).split(' ')[0]!}`,
      last?.id ?? NOTHING,
      resultInWords(state, last),
      owner,
    ]),
    { flexible: 'OWNER', optional: ['OWNER'] },
  )
}

/** Only Temporal knows whether a run without a result is still under way. */
function resultInWords(state: ScheduleSummary['state'], last: RecordedRun | null): string {
  if (last === null) return NOTHING
  const isKnown = state === 'active' || state === 'paused'
  return last.result?.state ?? (isKnown ? 'under way' : 'unknown')
}

export function showSchedule(cli: Cli, view: ScheduleView, incomplete: string | null): void {
  const { out } = cli
  out.json({ ...view, incomplete })
  if (view.silentRuns === null || view.silentRuns > 0) cli.saysUnknown()
  const { name, state, revision, owner, spec, note, next, running, production, revisions } = view
  out.line(`${out.paint.bold(name)}  ${state}${note === null || state !== 'paused' ? '' : ` (${note})`}`)
  const changed = revisions.at(-1)
  const row = (title: string, text: string): void => out.prose(`  ${title.padEnd(11)} ${text}`, 12)
  row('owner', owner)
  if (changed !== undefined)
    row('revision', `${revision}, ${changed.kind} by ${changed.by} ${age(changed.atMs, cli.now())} ago`)
  if (next !== null)
    row(
      'next window',
      `${formatInZone(next.opensAtMs, spec.calendar.zone)}; its run begins ${formatInstant(next.startsAtMs)}`,
    )
  for (const words of lateInWords(view)) row('dates', words)
  row('production', productionInWords(production))
  for (const status of running) showRunning(cli, status)
  const silent = silentInWords(view)
  if (silent !== undefined) out.line(silent)
}

function silentInWords({ state, running, silentRuns }: ScheduleView): string | undefined {
  if (silentRuns === null) {
    const why = state === 'gone' ? 'the server does not have this schedule' : 'Temporal does not answer'
    return `Whether a run is active is unknown: ${why}.`
  }
  if (silentRuns > 0) return `${plural(silentRuns, 'active run does', 'active runs do')} not answer.`
  return running.length === 0 ? 'No run is active.' : undefined
}

function lateInWords({ waiting, skipped }: Pick<ScheduleView, 'waiting' | 'skipped'>): string[] {
  if (waiting === null || skipped === null) return []
  const { overlapped, missed } = skipped
  const words: [number, string][] = [
    [waiting, 'due: waiting for the previous run'],
    [overlapped, 'skipped: the previous run was not over'],
    [missed, 'missed: the server was down for too long; see `crucible schedule backfill`'],
  ]
  return words.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`)
}

function showRunning(cli: Cli, status: RetrainStatus): void {
  const { schedule, run, state, message, trouble, warnings, jobs, verdict, untilAtMs, pageUrl } = status
  const { out } = cli
  out.line()
  out.prose(`Run ${run?.id ?? ''}  ${state}: ${message}`)
  if (untilAtMs !== undefined)
    out.line(`  ${'until'.padEnd(11)} ${formatInZone(untilAtMs, run?.dates.zone ?? 'UTC')}`)
  if (pageUrl !== undefined) out.line(`  ${'page'.padEnd(11)} ${pageUrl}`)
  for (const { part, jobId, state: jobState } of jobs)
    out.line(`  ${part.padEnd(11)} ${jobId}  ${jobState ?? 'running'}`)
  if (verdict !== undefined) out.line(`  ${'quality'.padEnd(11)} ${verdict.message}`)
  if (state === 'awaiting-approval') out.line(`  ${cli.asCalled(howToApprove({ schedule, run }))}`)
  for (const warning of warnings) out.warn(warning)
  if (trouble !== undefined) out.note(out.paintNote.yellow(`trouble: ${trouble}`))
}

export function productionInWords(production: PromotedModel | null): string {
  if (production === null) return 'no model yet'
  const { seq, jobId, run, metric, digest } = production
  const quality = metric === undefined ? '' : `, ${metric.name} ${metric.value}`
  return `version ${seq}: ${jobId}, run ${run}${quality}, ${digest.slice(0, 12)}`
}

export function showHistory(cli: Cli, history: ScheduleHistory, incomplete: string | null): void {
  const { out } = cli
  out.json({ ...history, incomplete })
  const { name, runs, production, running } = history
  if (runs.length === 0 && incomplete !== null) return
  if (runs.length === 0) return out.line(`${name} has not run yet.`)
  out.table(
    ['RUN', 'DATA FROM', 'TO', 'RESULT', 'QUALITY', 'COST', 'MODEL', 'TOOK'],
    runs.map((run) => rowOf(run, running)),
    { right: ['COST', 'TOOK'] },
  )
  out.line()
  out.line(`In production: ${productionInWords(production)}`)
  const told = runs.find(({ result }) => result !== null)?.result
  if (told != null) out.line(`Last: ${told.message}`)
}

function rowOf({ id, result }: RecordedRun, running: readonly RetrainStatus[]): string[] {
  if (result === null) {
    const status = running.find(({ run }) => run?.id === id)
    const { start = NOTHING, end = NOTHING } = status?.run?.dates.window ?? {}
    return [id, start, end, status?.state ?? 'unknown', NOTHING, NOTHING, NOTHING, NOTHING]
  }
  const { run, state, costMicroUsd, model, startedAtMs, endedAtMs } = result
  return [
    id,
    run.dates.window.start,
    run.dates.window.end,
    state,
    qualityOf(result),
    formatUsd(costMicroUsd),
    model === undefined ? NOTHING : `${model.jobId} ${model.digest.slice(0, 8)}`,
    formatDuration(endedAtMs - startedAtMs).split(' ')[0]!,
  ]
}

function qualityOf({ verdict }: RetrainResult): string {
  if (verdict === undefined || verdict.value === null) return NOTHING
  const against = verdict.production === null ? '' : ` (was ${verdict.production})`
  return `${verdict.metric} ${verdict.value}${against}`
}
