import { describe, expect, it } from '@jest/globals'
import { ACCOUNT_FLAGS, type AccountPart, type AccountSetup, type Survey } from '../../../backends/registry'
import { applyAccount } from '../../../cli/deployment/account'
import type { Cli } from '../../../cli/cli'
import { refuseForeignFlags } from '../../../cli/commands/deployment/setup'

const part = (facts: Partial<AccountPart>): AccountPart => ({
  id: 'x',
  what: 'bucket',
  name: 'b',
  state: 'there',
  remarks: [],
  ...facts,
})

function stage(parts: AccountPart[]): { cli: Cli; lines: string[]; setup: AccountSetup } {
  const lines: string[] = []
  const say = (line = ''): void => void lines.push(line)
  const out = {
    line: say,
    note: say,
    json: () => undefined,
    table: () => undefined,
    paint: { red: String, green: String, yellow: String },
  }
  const survey: Survey = {
    place: { account: '1', region: 'us-east-1', identity: 'ann', prefix: 'crucible' },
    parts,
    remarks: [],
    quotas: [],
    settings: {},
  }
  return {
    lines,
    cli: {
      out,
      interruption: () => new AbortController().signal,
      asCalled: (text: string) => text,
      exitCode: 0,
    } as unknown as Cli,
    setup: { survey: async () => survey, apply: async () => [] } as unknown as AccountSetup,
  }
}

describe('crucible setup aws', () => {
  it('names what is missing where it could not make all', async () => {
    const { cli, lines, setup } = stage([
      part({}),
      part({ what: 'role', name: 'crucible-worker', state: 'missing' }),
      part({
        what: 'security group',
        name: 'crucible',
        state: 'differs',
        remarks: ['it allows inbound traffic'],
      }),
    ])
    await applyAccount(cli, { provider: 'aws', flags: ACCOUNT_FLAGS, setup }, { yes: true })
    expect(cli.exitCode).not.toBe(0)
    expect(lines.at(-1)).toMatch(
      /^The account is not complete\. Missing: role crucible-worker; security group crucible \(differs: it allows inbound traffic\)\./,
    )
  })
})

describe('crucible setup of a provider that has no Regions, networks, Terraform or quotas', () => {
  it('refuses each flag that it lacks in one sentence, before it asks the provider anything', () => {
    const lacks = (options: Parameters<typeof refuseForeignFlags>[2]) => (): void =>
      refuseForeignFlags('small', ['profile'], options)
    expect(
      lacks({ prefix: 'crucible', profile: 'mine', yes: true, dryRun: true, remove: true }),
    ).not.toThrow()
    expect(lacks({ region: 'here' })).toThrow('crucible setup small has no --region.')
    expect(lacks({ ownNetwork: true })).toThrow('crucible setup small has no --own-network.')
    expect(lacks({ terraform: 'infra' })).toThrow('crucible setup small has no --terraform.')
    expect(lacks({ quota: true })).toThrow('crucible setup small has no --quota.')
    expect(lacks({ bucket: 'b' })).toThrow('crucible setup small has no --bucket.')
    expect(lacks({ withData: true, remove: true })).toThrow('crucible setup small has no --with-data.')
  })

  it('shows and applies what it has, and advises no command that it lacks', async () => {
    const { cli, lines, setup } = stage([part({ what: 'key', name: 'crucible', state: 'missing' })])
    const survey = await setup.survey(new AbortController().signal)
    delete survey.place.region
    await applyAccount(cli, { provider: 'small', flags: [], setup }, { yes: true })
    expect(lines[0]).toBe('Account 1, as ann\n')
    expect(lines.at(-1)).toMatch(/Missing: key crucible\. Fix that and run it again\.$/)
  })
})
