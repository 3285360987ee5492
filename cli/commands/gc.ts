import { createRequire } from 'node:module'
import type { Command } from 'commander'
import { EXIT_CODES } from '../../client/errors'
import { collectGarbage, type GarbageRun } from '../../client/garbage'
import type { GarbageVerdict } from '../../core/messages'
import { formatDuration } from '../../core/time'
import { durationArgument } from '../arguments'
import type { Cli } from '../cli'
import { examples } from '../examples'
import { NOTHING, plural } from '../words'
import type * as workerConfig from '../../workers/config'
import type * as deployments from '../../workers/deployment'

/** Loaded by who runs the command: help and completion need none of it. */
const lazily = createRequire(__filename)

interface Options {
  dryRun?: boolean
  adopt?: boolean
  grace?: number
}

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'End machines that no open job owns, as the schedule does every ten minutes: what is unowned now and still is after a grace. ' +
        'What this deployment did not make is never touched.',
    )
    .option('--dry-run', 'end nothing, only say what would be ended')
    .option('--grace <duration>', 'wait so long between the two looks (usually 5m)', durationArgument)
    .option(
      '--adopt',
      'tell the Temporal server that it serves this deployment, after it was reset or replaced',
    )
    .addHelpText(
      'after',
      examples(
        ['crucible gc --dry-run', 'what is there, and whose'],
        ['crucible gc', 'end what nobody owns'],
        ['crucible gc --adopt', 'once you are sure that store and server belong together'],
      ),
    )
    .action((options: Options) => (options.adopt === true ? adopt(cli) : collect(cli, options)))
}

async function collect(cli: Cli, { dryRun, grace }: Options): Promise<void> {
  const { out } = cli
  const context = cli.context()
  const { verdicts: first } = await (await collectGarbage(context, { isDryRun: true })).result()
  const unowned = first.filter(({ action }) => action === 'would-end')
  if (dryRun === true || unowned.length === 0) return tell(cli, first)
  const run = await collectGarbage(context, {
    isDryRun: false,
    ...(grace === undefined ? {} : { graceMs: grace }),
  })
  out.note(
    `${plural(unowned.length, 'machine')} without an owner; ended if that is still so in ${formatDuration(run.graceMs)}. ` +
      `Ctrl-C does not stop it (workflow ${run.workflowId}).`,
  )
  const verdicts = await resultOrInterruption(cli, run)
  if (verdicts !== undefined) tell(cli, verdicts)
}

async function resultOrInterruption(cli: Cli, run: GarbageRun): Promise<GarbageVerdict[] | undefined> {
  const signal = cli.interruption()
  const interrupted = new Promise<undefined>((resolve) =>
    signal.addEventListener('abort', () => resolve(undefined), { once: true }),
  )
  return (await Promise.race([run.result(), interrupted]))?.verdicts
}

function tell(cli: Cli, verdicts: GarbageVerdict[]): void {
  const { out } = cli
  out.json({ verdicts })
  if (verdicts.some(({ action }) => action === 'failed')) cli.exitCode = EXIT_CODES.failed
  if (verdicts.length === 0) return out.line('Nothing of this deployment is anywhere.')
  out.table(
    ['', 'BACKEND', 'WHAT', 'ID', 'OWNER', 'WHY', 'IT'],
    verdicts.map(({ action, backend, kind, id, owner, reason, description }) => [
      action,
      backend,
      kind,
      id || NOTHING,
      owner || NOTHING,
      reason,
      description,
    ]),
  )
}

async function adopt(cli: Cli): Promise<void> {
  const { readWorkerConfig } = lazily('../../workers/config') as typeof workerConfig
  const { adoptDeployment, deploymentOf, knownDeployment } = lazily(
    '../../workers/deployment',
  ) as typeof deployments
  const { backends } = readWorkerConfig(cli.environment)
  const context = cli.context()
  const client = await context.temporal()
  const before = await knownDeployment(client)
  const deployment = await deploymentOf(context.store)
  if (before !== deployment) await adoptDeployment(client, { deployment, backends: [...backends.keys()] })
  cli.out.json({ deployment, before: before ?? null })
  cli.out.line(
    before === deployment
      ? `The server serves ${deployment} already.`
      : `The server now serves ${deployment}${before === undefined ? '' : ` instead of ${before}`}; garbage collection is on.`,
  )
}
