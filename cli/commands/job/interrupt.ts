import type { Command } from 'commander'
import { limitedTo } from '../../../backends/calls'
import { readDevNote, type DevNote } from '../../../client/config'
import { CrucibleError } from '../../../client/errors'
import { findJob } from '../../../client/job/find-job'
import { readDeployment } from '../../../storage/deployment'
import { readMachine } from '../../../storage/machines'
import { unmarkedStore } from '../../../storage/mark'
import { isAttemptOver } from '../../../client/job/view'
import { watchJob } from '../../../client/job/watch'
import type { MachineHandle } from '../../../core/handle'
import { isFinal } from '../../../core/job/job'
import { formatDuration, MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import { durationArgument } from '../../kit/arguments'
import type { Cli } from '../../cli'
import { examples } from '../../examples'
import type * as workerConfig from '../../../service/config'
import type * as backendMaking from '../../../service/make-backend'

/** Long enough to save a small checkpoint, short enough to watch. */
const NOTICE_DEFAULT_MS = 30 * SECOND_MS
const CALL_LIMIT_MS = 30 * SECOND_MS
/** Limit from a submission to a running program, on a busy machine. */
const MACHINE_LIMIT_MS = 2 * MINUTE_MS
/** Limit from a running program to its first checkpoint; without one, an interruption shows no resume. */
const CHECKPOINT_LIMIT_MS = 30 * SECOND_MS

interface Options {
  notice?: number
  withoutNotice?: boolean
}

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Interrupt the machine of a running job, as a provider would, to test recovery without a cloud. ' +
        'Works for machines of the small cloud (crucible dev --sim) that its provider may take back, such as spot machines, ' +
        'and for spot machines of this host (CRUCIBLE_LOCAL_SPOT=yes).',
    )
    .argument('<job>', 'id, beginning of an id, or name')
    .option(
      '--notice <duration>',
      `time between the notice and the end of the machine (default: ${formatDuration(NOTICE_DEFAULT_MS)})`,
      durationArgument,
    )
    .option('--without-notice', 'end it immediately, without notice')
    .addHelpText(
      'after',
      examples(
        ['crucible interrupt char-lm', 'with half a minute to save'],
        ['crucible interrupt job-3f --without-notice', 'as in a power failure'],
      ),
    )
    .action((job: string, options: Options) => interrupt(cli, job, options))
}

async function interrupt(cli: Cli, meant: string, { notice, withoutNotice }: Options): Promise<void> {
  if (notice !== undefined && withoutNotice === true) {
    throw new CrucibleError('usage', '--notice and --without-notice exclude each other.')
  }
  const id = await findJob(cli.context(), meant)
  const machine = await runningMachine(cli, id)
  const wishedMs = withoutNotice === true ? null : (notice ?? NOTICE_DEFAULT_MS)
  const { home } = cli.context().config
  const cloud = readDevNote(home)?.cloud
  const isSimulated = cloud?.simulated.includes(machine.backend) === true
  const noticeMs = isSimulated ? await askCloud(cloud, machine, wishedMs) : wishedMs
  if (!isSimulated) await takeBack(cli, machine, wishedMs)
  cli.out.json({ id, attemptId: machine.attemptId, noticeMs })
  const how =
    noticeMs === null ? 'was ended without notice' : `got notice that it ends in ${formatDuration(noticeMs)}`
  cli.out.line(
    cli.asCalled(`The machine ${machine.id} ${how}. Watch the job move: \`crucible show ${id} --watch\`.`),
  )
}

async function runningMachine(cli: Cli, id: string): Promise<MachineHandle> {
  const noted = new Set<string>()
  const note = (words: string): void => {
    if (!noted.has(words)) cli.out.note(words)
    noted.add(words)
  }
  let runningSinceMs: number | undefined
  const limit = limitedTo(MACHINE_LIMIT_MS, cli.interruption())
  for await (const view of watchJob(cli.context(), id, { signal: limit })) {
    const { attempts, state } = view
    const last = attempts.at(-1)
    const machine =
      last === undefined || isAttemptOver(last)
        ? undefined
        : await readMachine(cli.context().store, { jobId: id, attempt: last.number })
    // A machine that is interrupted before its program runs has no progress to lose.
    if (machine !== undefined && last!.state === 'running') {
      assertInterruptible(cli, machine)
      runningSinceMs ??= cli.now()
      const hasSaved = view.checkpoints.newest !== null || cli.now() - runningSinceMs > CHECKPOINT_LIMIT_MS
      if (hasSaved) return machine
      note(`Waiting up to ${formatDuration(CHECKPOINT_LIMIT_MS)} for the first checkpoint of ${id}.`)
      continue
    }
    if (isFinal(state)) throw new CrucibleError('failed', `${id} has no machine: it is over (${state}).`)
    note(`${id} is ${state}; waiting until it runs on a machine.`)
  }
  const waited = formatDuration(MACHINE_LIMIT_MS)
  throw new CrucibleError('failed', `${id} did not run on any machine within ${waited}.`, {
    hint: `See why: \`crucible show ${id}\`.`,
  })
}

/** Asks the small cloud's operator (docs/design/small-cloud.md). Returns the notice that its provider gave; null without one. */
async function askCloud(
  { url, controlKey }: NonNullable<DevNote['cloud']>,
  { id }: MachineHandle,
  noticeMs: number | null,
): Promise<number | null> {
  const wish = { instance: id, ...(noticeMs === null ? { isSilent: true } : { notice: noticeMs }) }
  const answer = await fetch(`${url}/_sim/interrupt`, {
    method: 'POST',
    headers: { authorization: `Bearer ${controlKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(wish),
    signal: AbortSignal.timeout(CALL_LIMIT_MS),
  })
  if (answer.ok) return ((await answer.json()) as { noticeMs: number | null }).noticeMs
  const { error } = (await answer.json()) as { error: string }
  const isSpotNeeded = error.includes('is not a spot instance')
  throw new CrucibleError('failed', `The small cloud refuses: ${error.replace(/^Error: /, '')}.`, {
    ...(isSpotNeeded && { hint: 'Submit the job with --interruptible --backend ec2:spot.' }),
  })
}

/** Refuses a machine that its provider never takes back before anything is waited for. */
function assertInterruptible(cli: Cli, { id, backend, realised }: MachineHandle): void {
  const isSimulated = readDevNote(cli.context().config.home)?.cloud?.simulated.includes(backend) === true
  if (isSimulated || realised.capacityType === 'spot') return
  throw new CrucibleError(
    'usage',
    `The machine ${id} is ${realised.capacityType}, and only spot machines can be interrupted.`,
    {
      hint: 'With CRUCIBLE_LOCAL_SPOT=yes this host has spot machines; `crucible dev --sim` has others.',
    },
  )
}

async function takeBack(cli: Cli, machine: MachineHandle, noticeMs: number | null): Promise<void> {
  const { readWorkerConfig } = require('../../../service/config') as typeof workerConfig
  const { makeBackend } = require('../../../service/make-backend') as typeof backendMaking
  const { store } = cli.context()
  const config = readWorkerConfig(cli.environment)
  const deployment = await readDeployment(store)
  if (deployment === undefined) throw unmarkedStore(store.url)
  const backend = await makeBackend(config, machine.backend, { store, deployment })
  if (backend.interrupt === undefined) {
    throw new CrucibleError('usage', `${machine.backend} does not interrupt machines on request.`, {
      hint: 'Test interruptions on spot machines of a small cloud: `crucible dev --sim`.',
    })
  }
  await backend.interrupt(machine, { noticeMs }, { signal: AbortSignal.timeout(CALL_LIMIT_MS) })
}
