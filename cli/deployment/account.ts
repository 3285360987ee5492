import { writeFileSync } from 'node:fs'
import type {
  AccountFlag,
  AccountPart,
  AccountSetup,
  QuotaState,
  Removal,
  Step,
  Survey,
} from '../../backends/registry'
import { CrucibleError, EXIT_CODES } from '../../client/errors'
import { listJobs } from '../../client/job/list'
import { isFinal, JOB_STATES } from '../../core/job/job'
import type { Cli } from '../cli'
import { plural } from '../kit/words'

/** The account of a provider, and what its set-up can do. */
export interface Account {
  provider: string
  flags: readonly AccountFlag[]
  setup: AccountSetup
}

interface AccountFlags {
  yes?: true
  dryRun?: true
  settings?: string
  withData?: true
}

/** Shows what an account has and lacks, asks for consent, and applies the changes. */
export async function applyAccount(
  cli: Cli,
  account: Account,
  { yes, dryRun, settings }: AccountFlags,
): Promise<void> {
  const { out } = cli
  const { setup } = account
  const signal = cli.interruption()
  const survey = await setup.survey(signal)
  tellSurvey(cli, account, survey)
  const taken = survey.parts.filter(({ state }) => state === 'taken')
  if (taken.length > 0)
    throw new CrucibleError('usage', `Conflicting resources: ${taken.map(inWords).join('; ')}.`)
  const open = survey.parts.filter(({ state }) => !['there', 'theirs'].includes(state))
  if (dryRun === true) return out.json({ ...survey, steps: [], isComplete: open.length === 0 })
  if (open.length === 0) return conclude(cli, { account, survey, steps: [] }, settings)
  const isWanted = yes ?? (await cli.confirm('\nApply these changes?'))
  if (signal.aborted) return
  if (isWanted === undefined)
    throw new CrucibleError('usage', 'Nothing was changed.', {
      hint: 'Pass --yes to apply the changes, or --dry-run to only show them.',
    })
  if (!isWanted) return cli.refused('Nothing was changed.')
  const steps = await setup.apply({ signal, onStep: (step) => tellStep(cli, step) })
  if (signal.aborted) {
    out.note(
      'Stopped before it was complete. Run it again: it continues from here and creates nothing twice.',
    )
    return out.json({ ...survey, steps, isComplete: false })
  }
  conclude(cli, { account, survey: await setup.survey(signal), steps }, settings)
}

function inWords({ what, name, remarks }: AccountPart): string {
  return `${what} ${name} ${remarks.join(', ')}`
}

/** Describes a differing part: `bucket crucible-1-us-east-1 (differs: it is not encrypted)`. */
function missingInWords({ what, name, state, remarks }: AccountPart): string {
  const why = remarks.length === 0 ? '' : `: ${remarks.join(', ')}`
  return state === 'missing' && why === '' ? `${what} ${name}` : `${what} ${name} (${state}${why})`
}

const MARKS: Readonly<Record<AccountPart['state'], string>> = {
  there: 'there',
  differs: 'will be corrected',
  missing: 'will be created',
  theirs: 'is used unchanged',
  taken: 'conflicts',
  unknown: 'unknown',
}

function tellSurvey(cli: Cli, account: Account, { place, parts, remarks, quotas }: Survey): void {
  const { out } = cli
  out.block(`Account ${placeInWords(place)}, as ${place.identity}\n`)
  out.table(
    ['RESOURCE', 'NAME', 'ACTION', 'REASON'],
    parts.map(({ what, name, state, remarks: why }) => [what, name, MARKS[state], why.join(', ')]),
    { flexible: 'REASON' },
  )
  out.line()
  for (const remark of remarks) out.line(remark)
  tellQuotas(cli, account, quotas)
}

function placeInWords({ account, region }: Survey['place']): string {
  return region === undefined ? account : `${account}, ${region}`
}

export function tellQuotas(
  cli: Cli,
  { provider }: Pick<Account, 'provider'>,
  quotas: readonly QuotaState[],
): void {
  const { out } = cli
  for (const { name, value, unit, request, wanted, isAskable } of quotas) {
    const has = value === undefined ? 'unknown' : `${value} ${unit}`
    const ask = isAskable ? `; \`crucible setup ${provider} --quota\` asks for ${wanted}` : ''
    out.line(cli.asCalled(`Quota of ${name}: ${has}${request === undefined ? '' : `; ${request}`}${ask}`))
  }
  if (quotas.some(({ value }) => value === 0))
    out.line(
      'New accounts often have a GPU quota of zero; most small requests are granted within a day. Jobs without GPUs can run now.',
    )
}

function tellStep(cli: Cli, { part, did, reason }: Step): void {
  const paint =
    did === 'failed' ? cli.out.paint.red : did === 'kept' ? cli.out.paint.yellow : cli.out.paint.green
  cli.out.line(
    `${paint(did.padEnd(7))}  ${part.what} ${part.name}${reason === undefined ? '' : `: ${reason}`}`,
  )
}

/** Reports the result and the next step. */
function conclude(
  cli: Cli,
  done: { account: Account; survey: Survey; steps: Step[] },
  settingsFile: string | undefined,
): void {
  const { out } = cli
  const { account, survey, steps } = done
  const failed = steps.filter(({ did }) => did === 'failed')
  const isComplete = survey.parts.every(({ state }) => state === 'there' || state === 'theirs')
  const permissions = [...new Set(failed.flatMap(({ permission }) => permission ?? []))]
  out.json({ ...survey, steps, isComplete, missingPermissions: permissions })
  if (!isComplete) {
    cli.exitCode = permissions.length > 0 ? EXIT_CODES.permission : EXIT_CODES.failed
    if (permissions.length > 0)
      out.block(
        `\nYou lack the ${permissions.length === 1 ? 'permission' : 'permissions'} ${permissions.join(', ')}.`,
      )
    const missing = survey.parts.filter(({ state }) => state !== 'there' && state !== 'theirs')
    out.line(
      cli.asCalled(
        `The account is not complete. Missing: ${missing.map(missingInWords).join('; ')}. Fix that and run it again${forAdministrators(account)}.`,
      ),
    )
    return
  }
  const lines = Object.entries(survey.settings).map(([name, value]) => `export ${name}='${value}'`)
  if (settingsFile !== undefined) writeFileSync(settingsFile, `${lines.join('\n')}\n`)
  out.block(
    `\nThe account is ready. ${settingsFile === undefined ? 'Settings for client and workers:' : `Written to ${settingsFile}:`}\n`,
  )
  for (const line of lines) out.line(line)
  out.block(cli.asCalled('\nThen start everything with `crucible dev`, and check it with `crucible doctor`.'))
}

function forAdministrators({ provider, flags }: Account): string {
  if (!flags.includes('terraform')) return ''
  return `, or ask an administrator to do the rest: \`crucible setup ${provider} --terraform FOLDER\` writes the files for them`
}

/** Shows what would be removed, asks for consent, and removes it. */
export async function removeAccount(
  cli: Cli,
  { setup }: Account,
  { yes, dryRun, withData }: AccountFlags,
): Promise<void> {
  const { out } = cli
  const signal = cli.interruption()
  const removal = await setup.removal(signal)
  const { place, parts } = removal
  out.block(
    `Account ${placeInWords(place)}, everything that set-up created under the prefix ${place.prefix}:\n`,
  )
  if (parts.length > 0)
    out.table(
      ['RESOURCE', 'NAME', 'ID'],
      parts.map(({ what, name, id }) => [what, name, id]),
    )
  await checkObstacles(cli, removal)
  if (parts.length === 0 || dryRun === true) {
    out.json({ ...removal, steps: [], isComplete: parts.length === 0 })
    return out.block(parts.length === 0 ? 'No resources found.' : '\nNothing was removed.')
  }
  const isWanted =
    yes ??
    (await cli.confirm(
      withData === true ? '\nRemove these resources and all data?' : '\nRemove these resources?',
    ))
  if (signal.aborted) return
  if (isWanted === undefined)
    throw new CrucibleError('usage', 'Nothing was removed.', {
      hint: 'Pass --yes to remove them, or --dry-run to only show them.',
    })
  if (!isWanted) return cli.refused('Nothing was removed.')
  const steps = await setup.remove({
    signal,
    hasData: withData === true,
    onStep: (step) => tellStep(cli, step),
  })
  const left = steps.filter(({ did }) => did !== 'removed')
  const isComplete = !signal.aborted && left.length === 0
  out.json({ ...removal, steps, isComplete })
  if (signal.aborted) return out.note('Stopped before it was complete. Run it again: it continues from here.')
  if (left.some(({ did }) => did === 'failed')) cli.exitCode = EXIT_CODES.failed
  out.block(
    isComplete
      ? '\nEverything is removed.'
      : `\nNot removed: ${left.map(({ part }) => `${part.what} ${part.name}`).join(', ')}.`,
  )
}

async function checkObstacles(cli: Cli, { obstacles, parts }: Removal): Promise<void> {
  const jobs = await openJobs(cli, parts)
  const all = [...obstacles, ...jobs]
  if (all.length === 0) return
  throw new CrucibleError('failed', `Still in use: ${all.map(({ message }) => message).join('; ')}.`, {
    hint: all[0]!.remedy,
    details: { obstacles: all },
  })
}

const SHOWN_MAX = 5

/** Open jobs that use this store, if a server answers. */
async function openJobs(cli: Cli, parts: readonly AccountPart[]): Promise<Removal['obstacles']> {
  const bucket = parts.find(({ what }) => what === 'bucket')?.name
  const { storeUrl } = cli.clientConfig().home
  if (bucket === undefined || !storeUrl.startsWith(`s3://${bucket}`)) return []
  try {
    const states = JOB_STATES.filter((state) => !isFinal(state))
    const jobs = await listJobs(cli.context(), { states, limit: SHOWN_MAX })
    if (jobs.length === 0) return []
    const ids = jobs.map(({ id }) => id).join(', ')
    return [
      {
        message: `${plural(jobs.length, 'job')} still ${jobs.length === 1 ? 'runs' : 'run'}: ${ids}`,
        remedy: 'Wait for them, or cancel them with `crucible cancel JOB`.',
      },
    ]
  } catch (error) {
    if (error instanceof CrucibleError && error.kind !== 'unavailable') throw error
    cli.out.note(
      'No Temporal server answers, so open jobs are unknown. Make sure that no machine of a job is still running.',
    )
    return []
  }
}
