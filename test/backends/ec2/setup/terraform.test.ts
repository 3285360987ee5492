/** The account as Terraform has it. What needs its provider is skipped where there is none. */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, jest } from '@jest/globals'
import { describeAccount, type Choices } from '../../../../backends/ec2/setup/description'
import { createAccountSetup } from '../../../../backends/ec2/setup'
import { writeTerraform } from '../../../../backends/ec2/setup/terraform'
import { testFolder } from '../../../support/folders'

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

function written(network: Choices['network']): string {
  const folder = join(testFolder('terraform'), 'infra')
  mkdirSync(folder)
  for (const [name, text] of Object.entries(writeTerraform({ ...CHOICES, network })))
    writeFileSync(join(folder, name), text)
  return folder
}

const hasTerraform = spawnSync('terraform', ['version']).status === 0
/** Where Terraform finds providers without a network, as `TF_CLI_CONFIG_FILE` or its usual folders say. */
const hasProvider = hasTerraform && canInitialise()

function canInitialise(): boolean {
  const folder = written(CHOICES.network)
  const mirror = ['/usr/share/terraform/plugins', '/usr/local/share/terraform/plugins']
  const isConfigured =
    process.env['TF_CLI_CONFIG_FILE'] !== undefined || mirror.some((path) => existsSync(path))
  return isConfigured && spawnSync('terraform', [`-chdir=${folder}`, 'init', '-backend=false']).status === 0
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
    const { status, stdout } = spawnSync('terraform', ['fmt', '-check', '-diff', folder], {
      encoding: 'utf8',
    })
    expect([status, stdout]).toEqual([0, ''])
  })

  const planned = hasProvider ? it : it.skip
  planned(
    'is valid, and plans without a network (skipped where the provider of AWS is not installed)',
    () => {
      const folder = written(network)
      const run = (...words: string[]) =>
        execFileSync('terraform', [`-chdir=${folder}`, ...words], { encoding: 'utf8' })
      writeFileSync(
        join(folder, 'offline_override.tf'),
        'provider "aws" {\n  access_key = "a"\n  secret_key = "b"\n  skip_credentials_validation = true\n  skip_requesting_account_id = true\n  skip_metadata_api_check = true\n}\n',
      )
      run('init', '-backend=false')
      run('validate')
      expect(run('plan', '-refresh=false', '-no-color')).toMatch(
        /Plan: \d+ to add, 0 to change, 0 to destroy/,
      )
    },
  )
})

it('is written also by who has no credentials', async () => {
  const setup = createAccountSetup({
    ...{ prefix: 'crucible', hasOwnNetwork: false, region: 'us-east-1', endpoint: 'http://127.0.0.1:9' },
  })
  const files = await setup.terraform(AbortSignal.timeout(60_000))
  expect(files['variables.tf']).toMatch(/us-east-1a = "10\.42\.0\.0\/20"/)
  expect(files['variables.tf']).toMatch(/variable "account_id" \{\n[^}]*type += string\n\}/)
})
