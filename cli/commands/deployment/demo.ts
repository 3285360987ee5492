import { join, relative } from 'node:path'
import type { Command } from 'commander'
import { CrucibleError, EXIT_CODES } from '../../../client/errors'
import type { JobView } from '../../../client/job/job-view'
import { formatDuration, SECOND_MS } from '../../../core/time/time'
import type { Cli } from '../../cli'
import type { Stage } from '../../demo/stage'
import type { Bill, Plot, Story } from '../../demo/story'
import { progressOn } from '../../dev/temporal/progress'
import { examples } from '../../examples'
import { packageRoot } from '../../kit/package'
import { checkSurroundings } from '../../kit/surroundings'
import { attemptReason, attemptTime, bytes, NOTHING, usd } from '../../kit/words'
import type * as stages from '../../demo/stage'
import type * as stories from '../../demo/story'

interface Options {
  keep?: boolean
  local?: boolean
  everywhere?: boolean
}

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Watch a training job lose its machine twice, once with notice and once without, and finish with exactly the weights of an ' +
        'undisturbed run. It runs on spot machines in two zones of a small cloud; everything happens on this machine, in a ' +
        'temporary folder, without cloud charges.',
    )
    .option('--local', 'use processes of this host as machines instead of the small cloud')
    .option(
      '--everywhere',
      'the job begins on a spot machine of EC2, continues on Modal, whose run limit it reaches, and ends on Lambda; takes three minutes',
    )
    .option('--keep', 'keep everything running for inspection, until Ctrl-C')
    .addHelpText(
      'after',
      examples(
        ['crucible demo', 'under a minute'],
        ['crucible demo --everywhere', 'one job on three providers'],
        ['crucible demo --keep', 'then inspect the job with the commands that it prints'],
      ),
    )
    .action((options: Options) => demo(cli, options))
}

/** Set-up longer than this is reported. */
const SET_UP_TOLD_MS = 5 * SECOND_MS

async function demo(
  cli: Cli,
  { keep: isKept = false, local: isLocal = false, everywhere: isEverywhere = false }: Options,
): Promise<void> {
  if (isLocal && isEverywhere)
    throw new CrucibleError('usage', '--local and --everywhere exclude each other.', {
      hint: 'Leave out one of them.',
    })
  checkSurroundings()
  const startedAtMs = cli.now()
  const progress = progressOn(cli.out.stderr, () => cli.now())
  const signal = cli.interruption(() => progress.note('Still cleaning up.'))
  let stage: Stage | undefined
  let told: StoryResult | undefined
  let left: string[]
  try {
    const what = isLocal ? 'a Temporal server and workers' : 'a small cloud, a Temporal server and workers'
    progress.note(`Starting ${what} in a temporary folder.`)
    const { setStage } = require('../../demo/stage') as typeof stages
    const { playStory, EVERYWHERE_PLOT, TWO_ZONES_PLOT } = require('../../demo/story') as typeof stories
    const plot = isEverywhere ? EVERYWHERE_PLOT : TWO_ZONES_PLOT
    stage = await setStage(cli, { progress, signal, isLocal, isEverywhere })
    const folder = join(packageRoot(), 'examples', 'char-lm')
    const telling = { stage, plot, folder, progress, signal, now: () => cli.now() }
    const story = await Promise.race([playStory(telling), stage.broken])
    told = {
      ...story,
      names: plot.bills,
      tookMs: cli.now() - startedAtMs - stage.setUpMs,
      setUpMs: stage.setUpMs,
    }
    tell(cli, told)
    if (isKept) await keep(cli, stage, told)
  } catch (error) {
    if (!signal.aborted) throw error
    progress.note('Stopping the demo.')
  } finally {
    left = (await stage?.close()) ?? []
  }
  conclude(cli, told, { left, isKept })
}

/** The story, its duration, and the duration of its set-up. */
type StoryResult = Story & { names: Plot['bills']; tookMs: number; setUpMs: number }

function tell({ out }: Cli, told: StoryResult): void {
  const { moved, undisturbed, weights, tookMs, setUpMs } = told
  const rows = [moved, undisturbed].flatMap((view) => attemptRows(view))
  out.line()
  out.table(['JOB', '#', 'MACHINE', 'END REASON', 'STEPS LOST', 'TIME', 'COST'], rows, {
    right: ['#', 'STEPS LOST', 'TIME', 'COST'],
    flexible: 'END REASON',
  })
  out.line()
  out.table(['', 'DURATION', 'MACHINES', 'COST'], billRows(told), { right: ['DURATION', 'MACHINES', 'COST'] })
  const before = setUpMs < SET_UP_TOLD_MS ? '' : `, after ${formatDuration(setUpMs)} of set-up`
  out.line(out.paint.dim(`No cloud charges. The demo took ${formatDuration(tookMs)}${before}.`))
  out.line()
  const { path, sizeBytes, sha256, isIdentical } = weights
  out.line(
    isIdentical
      ? `${out.paint.green('The same weights')}, byte for byte: ${path} of both jobs (${bytes(sizeBytes)}, SHA-256 ${sha256.slice(0, 12)}...).`
      : out.paint.red(`Different weights: the two jobs left different files ${path}.`),
  )
}

/** Cost and duration of the job that moved compared with the same work on demand, without interruption. */
function billRows({ spot, onDemand, names }: StoryResult): string[][] {
  const row = (name: string, { tookMs, machineMs, costMicroUsd }: Bill): string[] => [
    name,
    formatDuration(tookMs),
    formatDuration(machineMs),
    usd(costMicroUsd),
  ]
  const parts = [part(spot.tookMs, onDemand.tookMs), part(spot.machineMs, onDemand.machineMs)]
  return [
    row(names[0], spot),
    row(names[1], onDemand),
    ['the first, relative to the second', ...parts, part(spot.costMicroUsd, onDemand.costMicroUsd)],
  ]
}

/** `59 %` */
function part(amount: number | null, whole: number | null): string {
  return amount === null || whole === null || whole === 0
    ? NOTHING
    : `${Math.round((100 * amount) / whole)} %`
}

function attemptRows({ name, attempts }: JobView): string[][] {
  const isSeveral = new Set(attempts.map(({ backend }) => backend)).size > 1
  return attempts.map((attempt) => {
    const { number, backend, capacityType, place, stepsLost, costMicroUsd } = attempt
    // The first half of the sentence states the reason.
    const [why = ''] = attemptReason(attempt).split(';')
    return [
      name,
      String(number),
      [isSeveral && backend, capacityType, place].filter(Boolean).join(' '),
      why.replace(/\.$/, ''),
      stepsLost === null ? NOTHING : String(stepsLost),
      attemptTime(attempt, 0),
      usd(costMicroUsd),
    ]
  })
}

/** Keeps the deployment until Ctrl-C. */
async function keep(cli: Cli, { home, broken }: Stage, told: StoryResult): Promise<void> {
  const { out, invocation } = cli
  const signal = cli.interruption()
  out.jsonLine(documentOf(told, { home }))
  out.line()
  out.line(`Everything is still running. The job in Temporal's Web UI: ${told.moved.uiUrl}`)
  out.line('Inspect it from another terminal:')
  for (const command of [`show ${told.moved.id}`, `events ${told.moved.id}`, `logs ${told.moved.id}`]) {
    out.line(`  CRUCIBLE_HOME=${home} ${invocation} ${command}`)
  }
  out.line('Ctrl-C stops everything.')
  const ended = new Promise<void>((resolve) =>
    signal.addEventListener('abort', () => resolve(), { once: true }),
  )
  await Promise.race([ended, broken])
  // Ctrl-C is the expected end.
  cli.exitCode = 0
}

function documentOf(
  { moved, undisturbed, weights, spot, onDemand, tookMs, setUpMs }: StoryResult,
  rest: object,
): object {
  return {
    isIdentical: weights.isIdentical,
    weights,
    spot,
    onDemand,
    tookMs,
    setUpMs,
    uiUrl: moved.uiUrl,
    jobs: [moved, undisturbed],
    ...rest,
  }
}

function conclude(
  cli: Cli,
  told: StoryResult | undefined,
  { left, isKept }: { left: string[]; isKept: boolean },
): void {
  const { out, invocation } = cli
  if (left.length > 0) {
    out.note(`These processes are still running:\n${left.join('\n')}`)
    cli.exitCode = EXIT_CODES.failed
  }
  if (told === undefined) return
  if (!told.weights.isIdentical) cli.exitCode = EXIT_CODES.failed
  if (isKept) return
  out.json(documentOf(told, { left }))
  if (left.length === 0)
    out.line('Stopped the server, the workers and the machines; no process or folder remains.')
  const job = relative(process.cwd(), join(packageRoot(), 'examples', 'char-lm', 'job.yaml'))
  out.line()
  out.line('Next:')
  const next: [string, string][] = [
    ['demo --keep', 'the same, and inspect the job afterwards'],
    ['dev', 'run Crucible in one terminal, and the next commands in another'],
    [`submit ${job} --follow`, 'your first job'],
    ['list', 'your jobs'],
    ['--help', 'all commands'],
  ]
  const width = Math.max(...next.map(([command]) => command.length))
  for (const [command, meaning] of next) out.line(`  ${invocation} ${command.padEnd(width)}  ${meaning}`)
}
