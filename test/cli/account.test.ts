import { describe, expect, it } from '@jest/globals'
import type { AccountPart, AccountSetup, Survey } from '../../backends/registry'
import { applyAccount } from '../../cli/account'
import type { Cli } from '../../cli/cli'

const part = (facts: Partial<AccountPart>): AccountPart => ({
  ...{ id: 'x', what: 'bucket', name: 'b', state: 'there', remarks: [] },
  ...facts,
})

function stage(parts: AccountPart[]): { cli: Cli; lines: string[]; setup: AccountSetup } {
  const lines: string[] = []
  const say = (line = ''): void => void lines.push(line)
  const out = {
    ...{ line: say, note: say, json: () => undefined, table: () => undefined },
    paint: { red: String, green: String, yellow: String },
  }
  const survey: Survey = {
    place: { account: '1', region: 'us-east-1', identity: 'ann', prefix: 'crucible' },
    ...{ parts, remarks: [], quotas: [], settings: {} },
  }
  return {
    lines,
    cli: {
      ...{
        out,
        interruption: () => new AbortController().signal,
        asCalled: (text: string) => text,
        exitCode: 0,
      },
    } as unknown as Cli,
    setup: { survey: async () => survey, apply: async () => [] } as unknown as AccountSetup,
  }
}

describe('crucible setup aws', () => {
  it('names what is missing where it could not make all', async () => {
    const { cli, lines, setup } = stage([
      part({}),
      part({ what: 'role', name: 'crucible-worker', state: 'missing' }),
      part({ what: 'security group', name: 'crucible', state: 'differs', remarks: ['it lets something in'] }),
    ])
    await applyAccount(cli, setup, { yes: true })
    expect(cli.exitCode).not.toBe(0)
    expect(lines.at(-1)).toMatch(
      /^The account is not complete\. Missing: role crucible-worker; security group crucible \(differs: it lets something in\)\./,
    )
  })
})
