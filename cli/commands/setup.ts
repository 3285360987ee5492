import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { Argument } from 'commander'
import type { AccountSetup, AccountWish } from '../../backends/registry'
import type * as registry from '../../backends/registry'
import { CrucibleError } from '../../client/errors'
import type { Cli } from '../cli'
import { examples } from '../examples'
import { applyAccount, removeAccount, tellQuotas } from '../account'

interface Options {
  region?: string
  profile?: string
  prefix: string
  bucket?: string
  ownNetwork?: true
  yes?: true
  dryRun?: true
  settings?: string
  terraform?: string
  quota?: true
  remove?: true
  withData?: true
}

export function define(command: Command, cli: Cli): void {
  const { ACCOUNTS } = require('../../backends/registry') as typeof registry
  command
    .description(
      'Show what an account of a provider needs for jobs, and make it once you say yes. Run it again at any time: it shows what is ' +
        'there, makes what is missing and mends what differs. Everything it makes is tagged, and --remove takes exactly that away.',
    )
    .addArgument(new Argument('<provider>', 'whose account').choices(Object.keys(ACCOUNTS)))
    .option('--region <name>', 'Region of machines and store; of several (a,b) the first has the store')
    .option('--profile <name>', 'which of your credentials')
    .option('--prefix <name>', 'what all names begin with; another one is another set-up', 'crucible')
    .option('--bucket <name>', 'name of the store (usually PREFIX-ACCOUNT-REGION)')
    .option('--own-network', 'a network of its own, also where there is a default one')
    .option('--yes', 'do it without asking')
    .option('--dry-run', 'change nothing, only show')
    .option('--settings <file>', 'write the settings into a file that shells read')
    .option('--terraform <folder>', 'write the same as files for Terraform, and do nothing else')
    .option('--quota', 'ask for machines with GPUs where the account may have none, and show the answer')
    .option('--remove', 'remove what set-up has made; a bucket with data stays')
    .option('--with-data', 'with --remove: the bucket with all jobs and checkpoints, too')
    .addHelpText(
      'after',
      examples(
        ['crucible setup aws --region us-east-1', 'shows, asks, makes'],
        ['crucible setup aws --yes --settings crucible.env', 'without asking; then: . ./crucible.env'],
        ['crucible setup aws --quota', 'ask for machines with GPUs, or see what became of that'],
        ['crucible setup aws --terraform infra', 'for those who may not, and for those who may'],
        ['crucible setup aws --remove', 'takes away what it made'],
      ),
    )
    .action((provider: string, options: Options) => setUp(cli, ACCOUNTS[provider]!, options))
}

async function setUp(cli: Cli, open: registry.SetUpAccount, options: Options): Promise<void> {
  if (options.withData === true && options.remove !== true)
    throw new CrucibleError('usage', '--with-data goes with --remove only.')
  const setup = open(wishOf(options), cli.environment)
  const signal = cli.interruption()
  if (options.terraform !== undefined)
    return writeTerraform(cli, options.terraform, await setup.terraform(signal))
  if (options.remove === true) return removeAccount(cli, setup, options)
  if (options.quota === true) return quota(cli, setup, options)
  return applyAccount(cli, setup, options)
}

function wishOf({ region, profile, prefix, bucket, ownNetwork }: Options): AccountWish {
  return {
    prefix,
    hasOwnNetwork: ownNetwork === true,
    ...(region === undefined ? {} : { region }),
    ...(profile === undefined ? {} : { profile }),
    ...(bucket === undefined ? {} : { bucket }),
  }
}

function writeTerraform(cli: Cli, folder: string, files: Record<string, string>): void {
  mkdirSync(folder, { recursive: true })
  const paths = Object.keys(files).map((name) => join(folder, name))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  cli.out.json({ files: paths })
  for (const path of paths) cli.out.line(path)
  cli.out.line(`\nLook at ${join(folder, 'variables.tf')}, then: terraform init && terraform apply`)
}

async function quota(cli: Cli, setup: AccountSetup, { yes, dryRun }: Options): Promise<void> {
  const signal = cli.interruption()
  const { quotas } = await setup.survey(signal)
  const isAskable = quotas.some((each) => each.isAskable)
  tellQuotas(cli, quotas)
  const isWanted = isAskable && dryRun !== true && (yes ?? (await cli.confirm('Ask for them?')))
  if (isAskable && dryRun !== true && isWanted === undefined)
    throw new CrucibleError('usage', 'Nothing was asked for.', {
      hint: 'Say --yes, or --dry-run to only look.',
    })
  const now = isWanted === true ? await setup.askForQuotas({ signal }) : quotas
  cli.out.json({ quotas: now })
  if (isWanted === true) tellQuotas(cli, now)
}
