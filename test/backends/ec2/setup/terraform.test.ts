/** The account as Terraform has it, judged by Terraform and its provider of AWS or, where that cannot be had, the provider's schema. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, jest } from '@jest/globals'
import { describeAccount, networkOf, type Choices } from '../../../../backends/ec2/setup/description'
import { createAccountSetup } from '../../../../backends/ec2/setup'
import { writeTerraform, type OtherRegion } from '../../../../backends/ec2/setup/terraform'
import { testFolder } from '../../../support/folders'
import { hasTerraform, runTerraform, terraformIn } from '../../../support/terraform'
import { patient } from '../../../support/patience'

jest.setTimeout(120_000)

const CHOICES: Choices = {
  account: '111122223333',
  region: 'eu-west-1',
  prefix: 'team',
  bucket: 'team-store',
  network: { zones: ['eu-west-1a', 'eu-west-1b'] },
  makesSpotRole: true,
  letsWorkersBuy: false,
}
interface Way {
  network: Choices['network']
  others?: OtherRegion[]
}
const OWN: Way = { network: CHOICES.network }
const THERE: Way = { network: { vpcId: 'vpc-0123456789abcdef0' } }
const WEST: OtherRegion = {
  region: 'us-west-2',
  network: { zones: ['us-west-2a', 'us-west-2b', 'us-west-2c'] },
}
const EAST: OtherRegion = { region: 'us-east-1', network: { vpcId: 'vpc-0fedcba9876543210' } }
const WAYS: [string, Way][] = [
  ['a network of its own', OWN],
  ['a network that is there', THERE],
  ['networks of their own in two Regions', { ...OWN, others: [WEST] }],
  ['both kinds of network in three Regions', { ...THERE, others: [WEST, EAST] }],
]
/** With these Terraform sends no request. */
const CREDENTIALS = `provider "aws" {
  access_key                  = "a"
  secret_key                  = "b"
  skip_credentials_validation = true
  skip_requesting_account_id  = true
  skip_metadata_api_check     = true
}
`

function written(way: Way): string {
  const folder = join(testFolder('terraform'), 'infra')
  mkdirSync(folder)
  for (const [name, text] of Object.entries(writeTerraform({ ...CHOICES, ...way })))
    writeFileSync(join(folder, name), text)
  return folder
}

it('Terraform lets workers buy only if they are to', () => {
  const written = (letsWorkersBuy: boolean): string =>
    Object.values(writeTerraform({ ...CHOICES, ...OWN, letsWorkersBuy })).join('\n')
  expect(written(true)).toMatch(
    /CRUCIBLE_EC2_BUYER_ROLE\s*=\s*"arn:aws:iam::\$\{var\.account_id\}:role\/\$\{var\.prefix\}-buyer"/,
  )
  expect(written(true)).toContain('"worker_buying"')
  expect(written(false)).not.toMatch(/CRUCIBLE_EC2_BUYER_ROLE|worker_buying/)
})

const terraform = terraformIn()
const judged = terraform === undefined ? it.skip : it

/** The output of `validate` for the files and for the additional files. */
function validated(way: Way, more = ''): { folder: string; output: string } {
  const folder = written(way)
  writeFileSync(join(folder, 'credentials_override.tf'), CREDENTIALS)
  writeFileSync(join(folder, 'more.tf'), more)
  const begun = terraform!(folder, 'init', '-backend=false')
  expect(begun).toMatchObject({ status: 0 })
  return { folder, output: terraform!(folder, 'validate').output }
}

const suffixOf = ({ region }: OtherRegion): string => `_${region.replaceAll('-', '_')}`

describe.each(WAYS)('with %s', (_, way) => {
  const { network, others = [] } = way
  const zoned = [{ ...CHOICES, network }, ...others].flatMap(({ network: each }, at) =>
    'vpcId' in each
      ? []
      : each.zones.map((zone) => ({ zone, suffix: at === 0 ? '' : suffixOf(others[at - 1]!) })),
  )

  it('has each piece of the description, and each of its statements', () => {
    const text = Object.values(writeTerraform({ ...CHOICES, ...way })).join('\n')
    const moreRegions = others.map(({ region }) => region)
    for (const piece of describeAccount({ ...CHOICES, network, moreRegions })) {
      if (piece.kind === 'subnet') expect(text).toContain(`${piece.zone} = "${piece.cidr}"`)
      else expect(text).toMatch(new RegExp(`resource "aws_\\w+" "${piece.id}"`))
      if (piece.kind !== 'role') continue
      for (const statements of [[piece.trust], ...Object.values(piece.policies)])
        for (const { Action } of statements)
          for (const action of [Action].flat()) expect(text).toContain(`"${action}"`)
    }
    for (const other of others)
      for (const piece of networkOf({ ...CHOICES, ...other })) {
        if (piece.kind === 'subnet') expect(text).toContain(`${piece.zone} = "${piece.cidr}"`)
        else expect(text).toMatch(new RegExp(`resource "aws_\\w+" "${piece.id}${suffixOf(other)}"`))
      }
    expect(text).not.toContain(CHOICES.prefix + '-machine')
  })

  const formatted = hasTerraform ? it : it.skip
  formatted('is written as its own formatter would (skipped without terraform)', () => {
    const folder = written(way)
    const env = { ...process.env, TF_CLI_CONFIG_FILE: '/dev/null' }
    expect(runTerraform(['fmt', '-check', '-diff', folder], env)).toEqual({ status: 0, output: '' })
  })

  judged('is valid, and plans without a network (skipped where its provider cannot be had)', () => {
    const { folder, output } = validated(way)
    expect(output).toContain('The configuration is valid')
    const planned = terraform!(folder, 'plan', '-refresh=false', '-input=false')
    expect(planned).toMatchObject({ status: 0 })
    const resources = readFileSync(join(folder, 'main.tf'), 'utf8').matchAll(/^resource "\w+" "(\w+)"/gm)
    const names = [...resources].flatMap(([, name]) =>
      name!.startsWith('zone')
        ? zoned.filter(({ suffix }) => name === `zone${suffix}`).map(({ zone }) => `${name}["${zone}"]`)
        : [name!],
    )
    expect(planned.output).toContain(`Plan: ${names.length} to add, 0 to change, 0 to destroy`)
    for (const name of names) expect(planned.output).toMatch(`.${name} will be created`)
  })
})

describe('the judge of the files (skipped where its provider cannot be had)', () => {
  judged.each([
    ['an unknown argument', 'aws_vpc', 'cidr_blok = "10.0.0.0/16"', '"cidr_blok" is not expected'],
    ['one of another type', 'aws_vpc', 'enable_dns_support = "x"', 'a bool is required'],
    ['one that is missing', 'aws_s3_bucket_policy', 'policy = "{}"', '"bucket" is required'],
    ['an unknown resource', 'aws_vpcs', '', 'does not support resource type "aws_vpcs"'],
  ])('refuses %s', (_, type, argument, reason) => {
    const { output } = validated(OWN, `resource "${type}" "more" {\n  ${argument}\n}\n`)
    expect(output).toContain('Error: ')
    expect(output.replace(/\s+/g, ' ')).toContain(reason)
  })
})

it('is written also by who has no credentials', async () => {
  const setup = createAccountSetup({
    ...{ prefix: 'crucible', hasOwnNetwork: false, region: 'us-east-1', endpoint: 'http://127.0.0.1:9' },
  })
  const files = await setup.terraform(AbortSignal.timeout(patient(60_000)))
  expect(files['variables.tf']).toMatch(/us-east-1a = "10\.42\.0\.0\/20"/)
  expect(files['variables.tf']).toMatch(/variable "account_id" \{\n[^}]*type += string\n\}/)
})

it('is written for several Regions also by who has no credentials', async () => {
  const setup = createAccountSetup({
    ...{ prefix: 'crucible', hasOwnNetwork: false, endpoint: 'http://127.0.0.1:9' },
    region: 'us-east-1,eu-west-1',
  })
  const files = await setup.terraform(AbortSignal.timeout(patient(60_000)))
  expect(files['variables.tf']).toMatch(
    /provider "aws" \{\n {2}alias {2}= "eu_west_1"\n {2}region = "eu-west-1"\n\}/,
  )
  expect(files['variables.tf']).toMatch(/variable "zones_eu_west_1" \{[^}]*eu-west-1a = "10\.42\.0\.0\/20"/)
  expect(files['outputs.tf']).toContain('"${var.region},eu-west-1"')
})
