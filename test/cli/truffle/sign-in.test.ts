import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { TruffleAccount } from './account'

jest.setTimeout(60_000)

let account: TruffleAccount

beforeEach(async () => {
  account = await TruffleAccount.open()
})
afterEach(() => account.close())

/** Without keys in the environment, and with this AWS configuration. */
function configure(config: string): void {
  delete account.environment['AWS_ACCESS_KEY_ID']
  delete account.environment['AWS_SECRET_ACCESS_KEY']
  writeFileSync(join(account.home, 'config'), config)
  account.adopt()
}

const asked = ['search', 'g5.xlarge', '--regions', 'us-east-1']

/** What a person reads: one sentence, and the command to run. */
async function told(...args: string[]): Promise<{ exitCode: number; stderr: string }> {
  const { exitCode, stdout, stderr } = await account.run(...(args.length === 0 ? asked : args))
  expect(stdout).toBe('')
  return { exitCode, stderr }
}

describe('without a valid sign-in, truffle says in one sentence which command to run:', () => {
  it('no credentials', async () => {
    configure('')
    expect(await told()).toEqual({
      exitCode: 4,
      stderr:
        'error: No AWS credentials were found.\nRun `aws login`; for IAM Identity Center `aws configure sso`, for keys `aws configure`.\n',
    })
  })

  it('a profile that does not exist', async () => {
    configure('[profile work]\nregion = us-east-1\n')
    expect(await told(...asked, '--profile', 'wrok')).toEqual({
      exitCode: 4,
      stderr:
        'error: The AWS profile wrok has no usable credentials.\nRun `aws configure --profile wrok`; `aws configure list-profiles` shows the profiles that exist.\n',
    })
  })

  it('a single sign-on session that needs a login', async () => {
    configure(
      '[profile work]\nsso_session = corp\nsso_account_id = 111122223333\nsso_role_name = ml\n[sso-session corp]\nsso_region = us-east-1\nsso_start_url = https://corp.awsapps.com/start\n',
    )
    expect(await told(...asked, '--profile', 'work')).toEqual({
      exitCode: 4,
      stderr:
        'error: The session of the AWS profile work (IAM Identity Center) does not exist.\nRun `aws sso login --profile work`.\n',
    })
  })

  it('an expired session in the environment', async () => {
    // The cloud knows no such token; that it has expired is the answer of its rule.
    account.environment['AWS_SESSION_TOKEN'] = 'old'
    account.cloud.addFault({ fault: 'error', code: 'RequestExpired', where: { service: 'ec2' } })
    expect(await told()).toEqual({
      exitCode: 4,
      stderr:
        'error: The AWS session in AWS_SESSION_TOKEN has ended.\nRun `eval "$(aws configure export-credentials --profile NAME --format env)"`, and restart workers that have the old keys.\n',
    })
  })

  it('keys that AWS does not know, in every format', async () => {
    account.environment['AWS_SECRET_ACCESS_KEY'] = 'wrong'
    account.adopt()
    expect(await told()).toEqual({
      exitCode: 4,
      stderr: expect.stringMatching(
        /^error: AWS refuses the credentials in AWS_ACCESS_KEY_ID \(\w+\)\.\nSet AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to valid keys/,
      ),
    })
    const { exitCode, stdout } = await account.run(...asked, '--json')
    expect([exitCode, JSON.parse(stdout)]).toMatchObject([
      4,
      { error: { kind: 'permission', hint: expect.any(String) } },
    ])
  })

  it('a role that the account must not read', async () => {
    account.cloud.addFault({
      fault: 'error',
      code: 'UnauthorizedOperation',
      message: 'not authorized to perform: ec2:DescribeInstanceTypes',
      where: { service: 'ec2', action: 'DescribeInstanceTypes' },
    })
    expect(await told()).toMatchObject({
      exitCode: 4,
      stderr: expect.stringContaining('ec2:DescribeInstanceTypes'),
    })
  })

  it('no Region list: only the home Region is asked, and a note says so', async () => {
    account.cloud.addFault({
      fault: 'error',
      code: 'UnauthorizedOperation',
      message: 'not authorized to perform: ec2:DescribeRegions',
      where: { service: 'ec2', action: 'DescribeRegions' },
    })
    const { results, notes } = await account.json('search', 'g5.xlarge')
    expect(results.map(({ region }) => region)).toEqual(['us-east-1'])
    expect(notes.join()).toContain('Only us-east-1 was asked')
  })
})

it('the cache never mixes accounts', async () => {
  mkdirSync(join(account.home, 'home'), { recursive: true })
  await account.run('capacity', '-r', 'us-east-1')
  const calls = (): number => account.cloud.journal.calls({ action: 'DescribeCapacityReservations' }).length
  const before = calls()
  await account.run('capacity', '-r', 'us-east-1')
  expect(calls()).toBe(before)
  account.environment['AWS_ACCESS_KEY_ID'] = 'AKIAOTHER00000000000'
  account.adopt()
  expect(await account.run('capacity', '-r', 'us-east-1')).toMatchObject({ exitCode: 4 })
})
