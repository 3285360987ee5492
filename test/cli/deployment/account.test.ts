import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ACCOUNT_FLAGS, type AccountPart, type AccountSetup, type Survey } from '../../../backends/registry'
import { CrucibleError } from '../../../client/errors'
import type * as list from '../../../client/job/list'
import type * as accounts from '../../../cli/deployment/account'
import type { Cli } from '../../../cli/cli'
import type * as command from '../../../cli/commands/deployment/setup'

let jobsFound: () => Promise<{ id: string }[]>
jest.mock('../../../client/job/list', () => ({
  ...jest.requireActual<typeof list>('../../../client/job/list'),
  listJobs: () => jobsFound(),
}))
const { applyAccount, removeAccount } = jest.requireActual<typeof accounts>('../../../cli/deployment/account')
const { refuseForeignFlags } = jest.requireActual<typeof command>('../../../cli/commands/deployment/setup')
beforeEach(() => {
  jobsFound = async () => []
})

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
    block: say,
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
      clientConfig: () => ({ home: { storeUrl: 's3://b?region=us-east-1' } }),
      context: () => ({}),
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
      part({ what: 'security group', name: 'crucible', state: 'differs', remarks: ['it lets something in'] }),
    ])
    await applyAccount(cli, { provider: 'aws', flags: ACCOUNT_FLAGS, setup }, { yes: true })
    expect(cli.exitCode).not.toBe(0)
    expect(lines.at(-1)).toMatch(
      /^The account is not complete\. Missing: role crucible-worker; security group crucible \(differs: it lets something in\)\./,
    )
  })
})

describe('crucible setup aws --remove', () => {
  function removing(obstacles: { message: string; remedy: string }[] = []): {
    lines: string[]
    isRemoved: () => boolean
    remove: () => Promise<void>
  } {
    const { cli, lines, setup } = stage([])
    let isRemoved = false
    const place = { account: '1', identity: 'ann', prefix: 'crucible' }
    Object.assign(setup, {
      removal: async () => ({ place, parts: [part({})], obstacles }),
      remove: async () => {
        isRemoved = true
        return [{ part: part({}), did: 'removed' }]
      },
    })
    const remove = () => removeAccount(cli, { provider: 'aws', flags: ACCOUNT_FLAGS, setup }, { yes: true })
    return { lines, isRemoved: () => isRemoved, remove }
  }

  it('removes nothing while jobs run in its store or machines exist, and names both', async () => {
    jobsFound = async () => [{ id: 'job-a' }]
    const { remove, isRemoved } = removing([
      { message: '1 of its machines is still there: i-1', remedy: 'Wait.' },
    ])
    await expect(remove()).rejects.toThrow(
      'Still in use: 1 of its machines is still there: i-1; 1 job still runs: job-a.',
    )
    expect(isRemoved()).toBe(false)
  })

  it('says that open jobs are unknown where no server answers, and continues', async () => {
    jobsFound = () => Promise.reject(new CrucibleError('unavailable', 'No server.'))
    const { remove, isRemoved, lines } = removing()
    await remove()
    expect(isRemoved()).toBe(true)
    expect(lines.join(' ')).toMatch(/open jobs are unknown.*Everything is removed/s)
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
