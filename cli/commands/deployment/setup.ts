import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { Argument } from 'commander'
import type { AccountRequest } from '../../../backends/registry'
import type * as registry from '../../../backends/registry'
import { readDevNote } from '../../../client/config'
import { CrucibleError } from '../../../client/errors'
import type { Cli } from '../../cli'
import { examples } from '../../examples'
import { applyAccount, removeAccount, tellQuotas, type Account } from '../../deployment/account'

interface Options {
  region?: string
  profile?: string
  prefix: string
  bucket?: string
  ownNetwork?: true
  buyer?: boolean
  boundary?: string
  kmsKey?: string
  rolePath?: string
  yes?: true
  dryRun?: true
  settings?: string
  terraform?: string
  quota?: true
  remove?: true
  withData?: true
}

export function define(command: Command, cli: Cli): void {
  const { ACCOUNTS } = require('../../../backends/registry') as typeof registry
  command
    .description(
      'Show what a provider account needs for jobs, and create it after you confirm. It can run again at any time: it shows what ' +
        'exists, creates what is missing and corrects what differs. Everything it creates is tagged, and --remove removes exactly that.',
    )
    .addArgument(new Argument('<provider>', 'the provider').choices(Object.keys(ACCOUNTS)))
    .option(
      '--region <name>',
      'region of the machines and the store; with several (a,b), the first has the store',
    )
    .option('--profile <name>', 'credentials profile to use')
    .option('--prefix <name>', 'prefix of all names; each prefix is a separate set-up', 'crucible')
    .option('--bucket <name>', 'name of the store (default: PREFIX-ACCOUNT-REGION)')
    .option('--own-network', 'create a separate network even if the account has a default one')
    .option('--buyer', 'let workers buy and hold capacity in advance, with a separate role')
    .option('--no-buyer', 'do not let workers buy capacity (default for a new set-up)')
    .option('--boundary <arn>', 'permissions boundary of all roles')
    .option('--kms-key <arn>', 'KMS key that encrypts the store')
    .option('--role-path <path>', 'path of all roles, such as /ml/')
    .option('--yes', 'apply without asking')
    .option('--dry-run', 'only show what would change')
    .option('--settings <file>', 'write the settings into a shell file')
    .option('--terraform <folder>', 'only write the same set-up as Terraform files')
    .option('--quota', 'request GPU quota if the account has none, and show the state of the request')
    .option('--remove', 'remove what set-up created; a bucket with data is kept')
    .option('--with-data', 'with --remove: also remove the bucket with all jobs and checkpoints')
    .addHelpText(
      'after',
      examples(
        ['crucible setup aws --region us-east-1', 'show, ask, create'],
        ['crucible setup aws --yes --settings crucible.env', 'apply without asking; then: . ./crucible.env'],
        ['crucible setup aws --quota', 'request GPU quota, or show the state of the request'],
        ['crucible setup aws --terraform infra', 'Terraform files for an administrator'],
        ['crucible setup aws --remove', 'remove what it created'],
      ),
    )
    .action((provider: string, options: Options) => setUp(cli, provider, options))
}

async function setUp(cli: Cli, provider: string, options: Options): Promise<void> {
  const { ACCOUNTS } = require('../../../backends/registry') as typeof registry
  const { address, flags, open } = ACCOUNTS[provider]!
  refuseForeignFlags(provider, flags, options)
  if (options.withData === true && options.remove !== true)
    throw new CrucibleError('usage', '--with-data requires --remove.')
  refuseSmallCloud(cli, address)
  const setup = open(wishOf(options), cli.environment)
  const account: Account = { provider, flags, setup }
  const signal = cli.interruption()
  if (options.terraform !== undefined && setup.terraform !== undefined)
    return writeTerraform(cli, options.terraform, await setup.terraform(signal))
  if (options.remove === true) return removeAccount(cli, account, options)
  if (options.quota === true) return quota(cli, account, options)
  return applyAccount(cli, account, options)
}

/** A running `crucible dev --sim` replaces the credentials and the address of a provider, and its account is ready. */
function refuseSmallCloud(cli: Cli, address: string): void {
  const { cloud, environment } = readDevNote(cli.clientConfig().home) ?? {}
  const simulated = cloud && environment?.[address]
  if (simulated === undefined || cli.environment[address] !== simulated) return
  throw new CrucibleError(
    'usage',
    'The account is the simulated one of the running `crucible dev --sim`, which needs no set-up.',
    { hint: 'Stop it to set up your own account.' },
  )
}

/** Exported to test it for a provider that has few flags. */
export function refuseForeignFlags(
  provider: string,
  flags: readonly registry.AccountFlag[],
  options: Partial<Options>,
): void {
  const given: Record<registry.AccountFlag, boolean> = {
    region: options.region !== undefined,
    profile: options.profile !== undefined,
    bucket: options.bucket !== undefined,
    'own-network': options.ownNetwork === true,
    terraform: options.terraform !== undefined,
    quota: options.quota === true,
    'with-data': options.withData === true,
    buyer: options.buyer !== undefined,
    boundary: options.boundary !== undefined,
    'kms-key': options.kmsKey !== undefined,
    'role-path': options.rolePath !== undefined,
  }
  for (const [flag, isGiven] of Object.entries(given))
    if (isGiven && !flags.includes(flag as registry.AccountFlag))
      throw new CrucibleError('usage', `crucible setup ${provider} has no --${flag}.`)
}

function wishOf(options: Options): AccountRequest {
  const { region, profile, prefix, bucket, ownNetwork, buyer, boundary, kmsKey, rolePath } = options
  return {
    prefix,
    hasOwnNetwork: ownNetwork === true,
    region,
    profile,
    bucket,
    letsWorkersBuy: buyer,
    boundary,
    kmsKey,
    rolePath,
  }
}

function writeTerraform(cli: Cli, folder: string, files: Record<string, string>): void {
  mkdirSync(folder, { recursive: true })
  const paths = Object.keys(files).map((name) => join(folder, name))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  cli.out.json({ files: paths })
  for (const path of paths) cli.out.line(path)
  cli.out.block(
    `\nReview ${join(folder, 'terraform.tfvars.json')}, then run: terraform init && terraform apply`,
  )
}

async function quota(cli: Cli, account: Account, { yes, dryRun }: Options): Promise<void> {
  const { setup } = account
  const signal = cli.interruption()
  const { quotas } = await setup.survey(signal)
  const isAskable = quotas.some((each) => each.isAskable)
  tellQuotas(cli, account, quotas)
  const isWanted = isAskable && dryRun !== true && (yes ?? (await cli.confirm('Request it?')))
  if (isAskable && dryRun !== true && isWanted === undefined)
    throw new CrucibleError('usage', 'Nothing was requested.', {
      hint: 'Pass --yes to send the request, or --dry-run to only show it.',
    })
  if (isWanted === false && isAskable && dryRun !== true) return cli.refused('Nothing was requested.')
  const now = (isWanted === true ? await setup.askForQuotas?.({ signal }) : undefined) ?? quotas
  cli.out.json({ quotas: now })
  if (isWanted === true) tellQuotas(cli, account, now)
}
