import type { Command } from 'commander'
import { CrucibleError, EXIT_CODES } from '../../../client/errors'
import {
  collectGarbage,
  endExpiredMachines,
  lastCollection,
  type GarbageRun,
  type LastCollection,
} from '../../../client/garbage'
import type { GarbageVerdict } from '../../../core/messages'
import { CLOCK_SLACK_MS, formatDuration, formatInstant } from '../../../core/time/time'
import { durationArgument } from '../../kit/arguments'
import type { Cli } from '../../cli'
import { examples } from '../../examples'
import type { TableOptions } from '../../kit/output'
import { age, NOTHING, plural, usd } from '../../kit/words'
import type * as workerConfig from '../../../service/config'
import type * as deployments from '../../../service/deployment'

interface Options {
  dryRun?: boolean
  last?: boolean
  adopt?: boolean
  alone?: boolean
  grace?: number
}

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Remove resources that no open job owns, as the schedule does every ten minutes: machines, volumes, launch templates, ' +
        'spot requests and unfinished uploads that are still orphaned after a grace period. Resources of other deployments are never touched.',
    )
    .option('--dry-run', 'remove nothing, only list what would be removed')
    .option('--last', 'scan nothing, only show the result of the last scheduled run')
    .option('--grace <duration>', 'wait between the two scans (default: 5m)', durationArgument)
    .option(
      '--alone',
      'only end machines whose lease has expired; needs the store and the providers, but no Temporal server and no worker',
    )
    .option('--adopt', 'bind the Temporal server to this deployment, after it was reset or replaced')
    .addHelpText(
      'after',
      examples(
        ['crucible gc --dry-run', 'list orphaned resources: owner, age, cost per day'],
        ['crucible gc --last', 'result of the last scheduled run'],
        ['crucible gc', 'remove orphaned resources'],
        ['crucible gc --alone', 'from a cron job on another host, in case the control plane is down'],
        ['crucible gc --adopt', 'once you are sure that the store and the server belong together'],
      ),
    )
    .action((options: Options) => {
      if (options.alone === true) return endAlone(cli, options)
      if (options.adopt === true) return adopt(cli)
      return options.last === true ? tellLast(cli) : collect(cli, options)
    })
}

async function collect(cli: Cli, { dryRun, grace }: Options): Promise<void> {
  const { out } = cli
  const context = cli.context()
  const { verdicts: first } = await (await collectGarbage(context, { isDryRun: true })).result()
  const unowned = first.filter(({ action }) => action === 'would-end')
  if (dryRun === true || unowned.length === 0) return tell(cli, first)
  const run = await collectGarbage(context, {
    isDryRun: false,
    graceMs: grace,
  })
  out.note(
    `${plural(unowned.length, 'orphaned resource')}; removed if still orphaned in ${formatDuration(run.graceMs)}. ` +
      `Ctrl-C does not stop the collection (workflow ${run.workflowId}).`,
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

/** Ends machines while no other part of the deployment can. */
async function endAlone(cli: Cli, { dryRun, last, adopt: isAdopting, grace }: Options): Promise<void> {
  if (last === true || isAdopting === true || grace !== undefined)
    throw new CrucibleError('usage', '--alone can be combined with --dry-run only.')
  const { verdicts, clockAheadMs } = await endExpiredMachines(cli.context(), {
    isDryRun: dryRun === true,
    signal: cli.interruption(),
  })
  if (Math.abs(clockAheadMs) > CLOCK_SLACK_MS) {
    const off = `${formatDuration(Math.abs(clockAheadMs))} ${clockAheadMs > 0 ? 'ahead of' : 'behind'}`
    cli.out.note(`The clock of this host is ${off} the store's; the store's clock was used.`)
  }
  tell(cli, verdicts)
}

async function tellLast(cli: Cli): Promise<void> {
  const last = await lastCollection(cli.context())
  if (last?.verdicts !== undefined) {
    const { verdicts, ...when } = last
    cli.out.note(`${formatInstant(when.startedAtMs)}, workflow ${when.workflowId}`)
    return tell(cli, verdicts, when)
  }
  if (last !== undefined) cli.exitCode = EXIT_CODES.failed
  cli.out.json({ verdicts: [], last: last ?? null })
  cli.out.line(
    last === undefined
      ? 'No scheduled run has finished yet, or the server no longer keeps it.'
      : `${formatInstant(last.startedAtMs)}: failed: ${last.problem ?? ''}`,
  )
}

function tell(cli: Cli, verdicts: GarbageVerdict[], last?: Omit<LastCollection, 'verdicts'>): void {
  const { out } = cli
  out.json({ verdicts, last })
  if (verdicts.some(({ action }) => action === 'failed')) cli.exitCode = EXIT_CODES.failed
  if (verdicts.length === 0) return out.line('No resources found for this deployment.')
  out.table(
    HEAD,
    verdicts.map((verdict) => rowOf(verdict, cli.now())),
    FIT,
  )
  const wasted = verdicts
    .filter(({ action }) => action === 'would-end' || action === 'failed')
    .reduce((sum, { costMicroUsdPerDay = 0 }) => sum + costMicroUsdPerDay, 0)
  if (wasted > 0) out.line(`Orphaned resources cost about ${usd(wasted)} per day.`)
}

/** Exported with its options to test how the table fits a screen. */
export const HEAD = [
  'ACTION',
  'BACKEND',
  'KIND',
  'ID',
  'PLACE',
  'OWNER',
  'AGE',
  'COST/DAY',
  'REASON',
  'RESOURCE',
]
export const FIT: TableOptions = {
  right: ['COST/DAY'],
  flexible: ['RESOURCE', 'REASON', 'OWNER'],
  optional: ['AGE', 'PLACE', 'BACKEND', 'RESOURCE', 'OWNER'],
}

function rowOf(verdict: GarbageVerdict, nowMs: number): string[] {
  const { action, backend, kind, id, owner, reason, description } = verdict
  const { place, sinceMs, costMicroUsdPerDay = null } = verdict
  return [
    action,
    backend,
    kind,
    id || NOTHING,
    place || NOTHING,
    owner || NOTHING,
    sinceMs === undefined ? NOTHING : age(sinceMs, nowMs),
    usd(costMicroUsdPerDay),
    reason,
    description,
  ]
}

async function adopt(cli: Cli): Promise<void> {
  const { readWorkerConfig } = require('../../../service/config') as typeof workerConfig
  const { adoptDeployment, deploymentOf, knownDeployment } =
    require('../../../service/deployment') as typeof deployments
  const { backends } = readWorkerConfig(cli.environment)
  const context = cli.context()
  const client = await context.temporal()
  const before = await knownDeployment(client)
  const deployment = await deploymentOf(context.store)
  if (before !== deployment) await adoptDeployment(client, { deployment, backends: [...backends.keys()] })
  cli.out.json({ deployment, before: before ?? null })
  cli.out.line(
    before === deployment
      ? `The server already serves ${deployment}.`
      : `The server now serves ${deployment}${before === undefined ? '' : ` instead of ${before}`}; garbage collection is on.`,
  )
}
