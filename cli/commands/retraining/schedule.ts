import { Argument, InvalidArgumentError, type Command } from 'commander'
import { CrucibleError } from '../../../client/errors'
import { isDate } from '../../../core/time/calendar'
import { startOfDay } from '../../../core/time/zones'
import { countArgument } from '../../kit/arguments'
import { checkOptions } from '../../kit/action-options'
import type { Cli } from '../../cli'
import { tellGaps } from '../../kit/gaps'
import { examples } from '../../examples'
import type * as expecting from '../../../client/job/expect'
import type * as clientRuns from '../../../client/retraining/schedule-runs'
import type * as clientSchedules from '../../../client/retraining/schedules'
import type { ScheduleSubmission } from '../../../client/retraining/schedules'
import type * as reading from '../../retraining/read-retrain'
import type * as texts from '../../retraining/schedule-text'

const ACTIONS = [
  'create',
  'next',
  'list',
  'show',
  'history',
  'update',
  'pause',
  'resume',
  'trigger',
  'backfill',
  'approve',
  'reject',
  'skip',
  'start-now',
  'delete',
] as const
type Action = (typeof ACTIONS)[number]

/** The actions that accept each option. */
const ACTIONS_OF: Readonly<Record<string, readonly Action[]>> = {
  count: ['next', 'history'],
  from: ['backfill'],
  to: ['backfill'],
  note: ['pause', 'resume', 'reject'],
  run: ['approve', 'reject', 'skip', 'start-now'],
  secrets: ['create', 'update'],
}

interface Options {
  count?: number
  from?: string
  to?: string
  note?: string
  run?: string
  secrets?: true
  yes?: true
}

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Retrain a model on a calendar: create the schedule of a retraining file, preview its dates, and look at its runs. ' +
        'The actions approve, reject, skip and start-now are for its current run.',
    )
    .addArgument(new Argument('<action>', 'what to do').choices(ACTIONS))
    .argument('[name]', 'for create and update a file, for next a file or a schedule, otherwise a schedule')
    .option('--count <count>', 'next, history: how many (default: 8)', countArgument(100))
    .option('--from <date>', 'backfill: the first day whose window is run late', parseDate)
    .option('--to <date>', 'backfill: the last day (default: the first)', parseDate)
    .option('--note <text>', 'pause, resume, reject: why')
    .option('--run <run>', 'approve, reject, skip, start-now: the id of the run, if there are several')
    .option('--secrets', 'update: only read the secrets of a schedule again, from the environment')
    .option('--yes', 'delete: without asking')
    .addHelpText(
      'after',
      examples(
        ['crucible schedule next retrain.yaml', 'preview the dates of a file'],
        ['crucible schedule create retrain.yaml', 'create its schedule; repeating it has no effect'],
        ['crucible schedule history ranker', 'the last runs: model, quality, cost'],
        ['crucible schedule trigger ranker', 'a run now, outside the calendar'],
        ['crucible schedule backfill ranker --from 2026-10-05', 'run a missed date'],
        ['crucible schedule approve ranker', 'put the new model into production'],
        ['HF_TOKEN=... crucible schedule update ranker --secrets', 'replace the stored secrets'],
      ),
    )
    .action((action: Action, name: string | undefined, options: Options) => {
      checkOptions(command, action, ACTIONS_OF)
      return run(cli, action, { name, options })
    })
}

interface Given {
  name: string | undefined
  options: Options
}

async function run(cli: Cli, action: Action, { name, options }: Given): Promise<void> {
  const text = require('../../retraining/schedule-text') as typeof texts
  const runs = require('../../../client/retraining/schedule-runs') as typeof clientRuns
  const context = cli.context()
  if (action === 'list') {
    const listed = await runs.listSchedules(context)
    return text.showList(cli, listed, tellGaps(cli, context.gaps))
  }
  if (name === undefined) throw missingName(action)
  switch (action) {
    case 'create':
    case 'update':
      return put(cli, name, { action, isOfSecrets: options.secrets === true })
    case 'next':
      return text.showNext(cli, await specOf(cli, name), options.count ?? COUNT)
    case 'show': {
      const view = await runs.showSchedule(context, name)
      return text.showSchedule(cli, view, tellGaps(cli, context.gaps))
    }
    case 'history': {
      const history = await runs.scheduleHistory(context, name, options.count ?? COUNT)
      return text.showHistory(cli, history, tellGaps(cli, context.gaps))
    }
    case 'pause':
    case 'resume':
      return pause(cli, name, { action, note: options.note })
    case 'trigger':
      await runs.triggerSchedule(cli.context(), name)
      return done(
        cli,
        { name, action },
        `Triggered a run of ${name}. See it with \`crucible schedule show ${name}\`.`,
      )
    case 'backfill':
      return backfill(cli, name, options)
    case 'delete':
      return remove(cli, name, options.yes === true)
    case 'approve':
    case 'reject':
    case 'skip':
    case 'start-now': {
      const { note: reason, run: which } = options
      const told = { word: action, reason, run: which }
      const { message } = await runs.tellRun(cli.context(), name, told)
      return done(cli, { name, action }, message)
    }
  }
}

const COUNT = 8

function missingName(action: Action): CrucibleError {
  const what = action === 'create' || action === 'update' ? 'a retraining file' : 'a schedule'
  return new CrucibleError('usage', `\`crucible schedule ${action}\` needs ${what}.`, {
    hint:
      action === 'create'
        ? 'Such as `crucible schedule create retrain.yaml`.'
        : 'See them with `crucible schedule list`.',
  })
}

function done(cli: Cli, document: object, sentence: string): void {
  cli.out.json({ ...document, message: sentence })
  cli.out.line(cli.asCalled(sentence))
}

const isFile = (name: string): boolean => /\.(?:ya?ml|json)$/i.test(name)

async function put(
  cli: Cli,
  name: string,
  { action, isOfSecrets }: { action: 'create' | 'update'; isOfSecrets: boolean },
): Promise<void> {
  const schedules = require('../../../client/retraining/schedules') as typeof clientSchedules
  if (isOfSecrets) {
    if (action !== 'update' || isFile(name))
      throw new CrucibleError(
        'usage',
        '--secrets belongs to `crucible schedule update NAME`, without a file.',
      )
    const { revision, secrets } = await schedules.renewSecrets(cli.context(), name)
    const sentence =
      secrets.length === 0
        ? `${name} needs no secrets.`
        : `The next runs of ${name} get new values of ${secrets.join(', ')}.`
    return done(cli, { name, revision, secrets }, sentence)
  }
  const { readCheckedRetrain } = require('../../retraining/read-retrain') as typeof reading
  const submission = await readCheckedRetrain(cli, name)
  await checkPlace(cli, submission)
  const { createSchedule, updateSchedule } = schedules
  const made = await (action === 'create' ? createSchedule : updateSchedule)(cli.context(), submission)
  ;(require('../../retraining/schedule-text') as typeof texts).showCreated(cli, submission.retrain.spec, made)
}

/** Refuses a job that no offer can run. Capacity that is reserved for each run comes later, and a quota may be raised until then. */
async function checkPlace(cli: Cli, { retrain }: ScheduleSubmission): Promise<void> {
  if (retrain.spec.capacity !== undefined) return
  const { expectPlace, QUOTA } = require('../../../client/job/expect') as typeof expecting
  const { warnings } = await expectPlace(cli.context(), { spec: retrain.sample, allowed: [QUOTA] })
  for (const warning of warnings) cli.out.warn(warning)
}

/** The rules of a file, or of a schedule. */
async function specOf(cli: Cli, name: string) {
  if (!isFile(name)) {
    const { currentOf } = require('../../../client/retraining/schedules') as typeof clientSchedules
    return (await currentOf(cli.context(), name)).input.spec
  }
  const { readRetrainFile } = require('../../retraining/read-retrain') as typeof reading
  return (await readRetrainFile(cli, name)).retrain.spec
}

async function pause(
  cli: Cli,
  name: string,
  { action, note }: { action: 'pause' | 'resume'; note: string | undefined },
): Promise<void> {
  const { pauseSchedule, resumeSchedule } =
    require('../../../client/retraining/schedule-runs') as typeof clientRuns
  const by = `${action === 'pause' ? 'paused' : 'resumed'} by ${cli.clientConfig().owner}`
  await (action === 'pause' ? pauseSchedule : resumeSchedule)(cli.context(), name, note ?? by)
  const sentence =
    action === 'pause'
      ? `Paused ${name}: no run begins until \`crucible schedule resume ${name}\`. Runs that have begun continue.`
      : `Resumed ${name}.`
  done(cli, { name, action }, sentence)
}

async function backfill(cli: Cli, name: string, { from, to }: Options): Promise<void> {
  if (from === undefined) {
    throw new CrucibleError('usage', 'backfill needs the first day to run.', {
      hint: 'Write, for example, --from 2026-10-05.',
    })
  }
  if (to !== undefined && to < from)
    throw new CrucibleError('usage', `--to ${to} is before --from ${from}.`, {
      hint: `Write --from ${to} --to ${from}.`,
    })
  const schedules = require('../../../client/retraining/schedules') as typeof clientSchedules
  const { spec } = (await schedules.currentOf(cli.context(), name)).input
  const { zone } = spec.calendar
  const fromMs = startOfDay(from, zone)
  const toMs = startOfDay(to ?? from, zone) + DAY_AND_MORE_MS
  const runs = await schedules.backfill(cli.context(), name, { fromMs, toMs })
  const days = runs.map(({ date }) => date)
  done(
    cli,
    { name, action: 'backfill', runs },
    `${name} makes up for ${days.join(', ')}, one run after another.`,
  )
}

/** A whole day, also one of 25 hours; windows open hours after midnight. */
const DAY_AND_MORE_MS = 24 * 3_600_000

async function remove(cli: Cli, name: string, isSure: boolean): Promise<void> {
  const schedules = require('../../../client/retraining/schedules') as typeof clientSchedules
  await schedules.checkSchedule(cli.context(), name)
  const isAgreed = isSure || (await cli.confirm(`Delete the schedule ${name} and its stored secrets?`))
  if (isAgreed === undefined) {
    throw new CrucibleError('usage', 'Deleting a schedule needs a confirmation.', { hint: 'Add --yes.' })
  }
  if (!isAgreed) return cli.refused('Nothing was deleted.')
  await schedules.deleteSchedule(cli.context(), name)
  done(
    cli,
    { name, isDeleted: true },
    `Deleted the schedule ${name}. Runs that have begun continue; its history stays.`,
  )
}

function parseDate(text: string): string {
  if (isDate(text)) return text
  throw new InvalidArgumentError('Write a date such as 2026-10-05.')
}
