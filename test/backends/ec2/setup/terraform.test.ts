/** The account as Terraform has it, judged by Terraform and its provider of AWS or, where that cannot be had, the provider's schema. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, jest } from '@jest/globals'
import { describeAccount, type Choices } from '../../../../backends/ec2/setup/description'
import { createAccountSetup } from '../../../../backends/ec2/setup'
import { writeTerraform } from '../../../../backends/ec2/setup/terraform'
import { testFolder } from '../../../support/folders'
import { hasTerraform, runTerraform, terraformIn } from '../../../support/terraform'

jest.setTimeout(120_000)

const CHOICES: Choices = {
  account: '111122223333',
  region: 'eu-west-1',
  prefix: 'team',
  bucket: 'team-store',
  network: { zones: ['eu-west-1a', 'eu-west-1b'] },
  makesSpotRole: true,
}
const NETWORKS: [string, Choices['network']][] = [
  ['a network of its own', CHOICES.network],
  ['a network that is there', { vpcId: 'vpc-0123456789abcdef0' }],
]
/** With these Terraform asks nobody. */
const CREDENTIALS = `provider "aws" {
  access_key                  = "a"
  secret_key                  = "b"
  skip_credentials_validation = true
  skip_requesting_account_id  = true
  skip_metadata_api_check     = true
}
`

function written(network: Choices['network']): string {
  const folder = join(testFolder('terraform'), 'infra')
  mkdirSync(folder)
  for (const [name, text] of Object.entries(writeTerraform({ ...CHOICES, network })))
    writeFileSync(join(folder, name), text)
  return folder
}

const terraform = terraformIn()
const judged = terraform === undefined ? it.skip : it

/** What `validate` says about the files and what more is written beside them. */
function validated(network: Choices['network'], more = ''): { folder: string; output: string } {
  const folder = written(network)
  writeFileSync(join(folder, 'credentials_override.tf'), CREDENTIALS)
  writeFileSync(join(folder, 'more.tf'), more)
  const begun = terraform!(folder, 'init', '-backend=false')
  expect(begun).toMatchObject({ status: 0 })
  return { folder, output: terraform!(folder, 'validate').output }
}

describe.each(NETWORKS)('with %s', (_, network) => {
  it('has each piece of the description, and each of its statements', () => {
    const text = Object.values(writeTerraform({ ...CHOICES, network })).join('\n')
    for (const piece of describeAccount({ ...CHOICES, network })) {
      if (piece.kind === 'subnet') expect(text).toContain(`${piece.zone} = "${piece.cidr}"`)
      else expect(text).toMatch(new RegExp(`resource "aws_\\w+" "${piece.id}"`))
      if (piece.kind !== 'role') continue
      for (const statements of [[piece.trust], ...Object.values(piece.policies)])
        for (const { Action } of statements)
          for (const action of [Action].flat()) expect(text).toContain(`"${action}"`)
    }
    expect(text).not.toContain(CHOICES.prefix + '-machine')
  })

  const formatted = hasTerraform ? it : it.skip
  formatted('is written as its own formatter would (skipped where there is no terraform)', () => {
    const folder = written(network)
    const env = { ...process.env, TF_CLI_CONFIG_FILE: '/dev/null' }
    expect(runTerraform(['fmt', '-check', '-diff', folder], env)).toEqual({ status: 0, output: '' })
  })

  judged('is valid, and plans without a network (skipped where its provider cannot be had)', () => {
    const { folder, output } = validated(network)
    expect(output).toContain('The configuration is valid')
    const planned = terraform!(folder, 'plan', '-refresh=false', '-input=false')
    expect(planned).toMatchObject({ status: 0 })
    const subnets = 'vpcId' in network ? [] : network.zones.flatMap((zone) => [`zone["${zone}"]`])
    const resources = readFileSync(join(folder, 'main.tf'), 'utf8').matchAll(/^resource "\w+" "(\w+)"/gm)
    const names = [...resources].flatMap(([, name]) => (name === 'zone' ? subnets : [name!]))
    expect(planned.output).toContain(`Plan: ${names.length} to add, 0 to change, 0 to destroy`)
    for (const name of names) expect(planned.output).toMatch(`.${name} will be created`)
  })
})

describe('the judge of the files (skipped where its provider cannot be had)', () => {
  judged.each([
    ['an argument that there is not', 'aws_vpc', 'cidr_blok = "10.0.0.0/16"', '"cidr_blok" is not expected'],
    ['one of another type', 'aws_vpc', 'enable_dns_support = "x"', 'a bool is required'],
    ['one that is missing', 'aws_s3_bucket_policy', 'policy = "{}"', '"bucket" is required'],
    ['a resource that there is not', 'aws_vpcs', '', 'does not support resource type "aws_vpcs"'],
  ])('refuses %s', (_, type, argument, reason) => {
    const { output } = validated(CHOICES.network, `resource "${type}" "more" {\n  ${argument}\n}\n`)
    expect(output).toContain('Error: ')
    expect(output.replace(/\s+/g, ' ')).toContain(reason)
  })
})

it('is written also by who has no credentials', async () => {
  const setup = createAccountSetup({
    ...{ prefix: 'crucible', hasOwnNetwork: false, region: 'us-east-1', endpoint: 'http://127.0.0.1:9' },
  })
  const files = await setup.terraform(AbortSignal.timeout(60_000))
  expect(files['variables.tf']).toMatch(/us-east-1a = "10\.42\.0\.0\/20"/)
  expect(files['variables.tf']).toMatch(/variable "account_id" \{\n[^}]*type += string\n\}/)
})
