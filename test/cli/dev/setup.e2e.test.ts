/**
 * The first cloud job, as docs/start/first-cloud-job.md prints it. moto, where it is installed, plays the account during set-up and
 * removal; a small cloud that has the resources of the template plays it in between.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Connection } from '@temporalio/client'
import type { JobView } from '../../../client'
import type { GarbageVerdict } from '../../../core/messages'
import type { Cloud } from '#small-cloud'
import { ACCOUNT, BUCKET, preparedAccount } from '../../backends/ec2/setup/accounts'
import { awsClients } from '../../support/aws-clients'
import { testFolder } from '../../support/folders'
import { hasMotoIn, startMoto, type Moto } from '../../support/moto'
import { freshNamespace } from '../../support/namespace'
import { connectTo, testServer } from '../../support/temporal'
import { until } from '../../support/until'
import { build, CommandLine } from '../process'

const ROOT = join(__dirname, '../../..')
const PAGE = readFileSync(join(ROOT, 'docs/start/first-cloud-job.md'), 'utf8')
const ACCOUNT_PAGE = readFileSync(join(ROOT, 'docs/reference/aws-account.md'), 'utf8')
/** What is to be typed, in its order. */
const LINES = [...PAGE.matchAll(/```sh\n([^]*?)```/g)].flatMap(([, block]) => block!.trim().split('\n'))
const [SETUP, SOURCE, DEV, DOCTOR, PLAN, SUBMIT, REMOVE] = LINES as [string, ...string[]]
const wordsOf = (line = ''): string[] => line.split(' ').slice(1)

/** Seconds where a deployment has minutes. */
const QUICK = {
  CRUCIBLE_BEAT: '1s',
  CRUCIBLE_OBSERVE: '0.5s',
  CRUCIBLE_GONE_CONFIRM: '1s',
  CRUCIBLE_CHECKPOINT_QUIET: '1s',
  CRUCIBLE_EC2_STALE_FOR: '3s',
  CRUCIBLE_EC2_TEMPLATES_KEPT: '1s',
}

/** Far more than anything takes that is waited for, on a machine that does other work. */
const PATIENCE_MS = 100_000
/** A second of work, and work that never ends on its own. */
const STEPS = { few: 100, many: 1_000_000 }

const { python } = awsClients()
const hasMoto = python !== undefined && hasMotoIn(python)
/** The settings after set-up, in addition to the id of the group, which a worker otherwise finds by its name. */
const SETTINGS = {
  CRUCIBLE_BACKENDS: 'ec2',
  CRUCIBLE_EC2_REGION: 'us-east-1',
  CRUCIBLE_EC2_PROFILE: 'crucible-machine',
  CRUCIBLE_GRANT_ROLE: `arn:aws:iam::${ACCOUNT}:role/crucible-grant`,
  CRUCIBLE_STORE: `s3://${BUCKET}?region=us-east-1`,
}

let moto: Moto | undefined
let cloud: Cloud
let folder: string
let environment: Record<string, string>
const opened: CommandLine[] = []

beforeAll(async () => {
  build()
  cloud = await preparedAccount()
  moto = hasMoto ? await startMoto(python) : undefined
  folder = testFolder('five-minutes')
  cpSync(join(ROOT, 'examples/char-lm'), join(folder, 'examples/char-lm'), { recursive: true })
  mkdirSync(join(folder, '.aws'))
  const { accessKeyId, secretAccessKey } = cloud.credentials
  const keys = `[default]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`
  writeFileSync(join(folder, '.aws/credentials'), keys)
  const [profile] = /\[profile crucible\][^`]*/.exec(ACCOUNT_PAGE)!
  writeFileSync(join(folder, '.aws/config'), profile.replace('ACCOUNT', ACCOUNT))
  const { client, close } = await connectTo()
  environment = {
    ...QUICK,
    CRUCIBLE_HOME: join(folder, 'home'),
    TEMPORAL_ADDRESS: testServer().address,
    TEMPORAL_NAMESPACE: await freshNamespace(client.connection as Connection),
    AWS_ENDPOINT_URL: cloud.endpoint,
    AWS_ENDPOINT_URL_S3: cloud.storeEndpoint!,
    AWS_EC2_METADATA_DISABLED: 'true',
  }
  await close()
}, 60_000)

afterAll(async () => {
  for (const each of opened) await each.close()
  await cloud?.stop()
  await moto?.stop()
}, 60_000)

/** With the keys of who owns the account, unless other settings say otherwise. */
function commandLine(settings: Record<string, string> = {}): CommandLine {
  const made = new CommandLine({ ...environment, ...settings }, folder)
  opened.push(made)
  return made
}

/** Lets the example's training be as long as the test needs. */
function train(steps: number): void {
  const path = join(folder, 'examples/char-lm/job.yaml')
  const text = readFileSync(path, 'utf8').replace(/^run: .*$/m, `run: python3 train.py --steps ${steps}`)
  writeFileSync(path, text)
}

/** What a line of the shell leaves in the environment. */
function sourced(line: string): Record<string, string> {
  const words = execFileSync('sh', ['-c', `${line} && env -0`], { cwd: folder, env: {}, encoding: 'utf8' })
  const entries = words.split('\0').filter((word) => word.startsWith('CRUCIBLE_'))
  return Object.fromEntries(
    entries.map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]),
  )
}

/** Set-up and removal reach moto, whose store is not that of the deployment: they look for open jobs on no server. */
const asOwner = (): CommandLine =>
  commandLine({
    ...SETTINGS,
    TEMPORAL_ADDRESS: '127.0.0.1:9',
    AWS_ENDPOINT_URL: moto!.endpoint,
    AWS_ENDPOINT_URL_S3: moto!.endpoint,
  })

describe('an account that has nothing', () => {
  it('is set up, runs jobs as its workers may, and is removed', async () => {
    expect(LINES).toHaveLength(7)
    if (hasMoto) {
      const done = await asOwner().json(...wordsOf(SETUP), '--yes')
      expect(done).toMatchObject({ isComplete: true })
      const group = expect.stringMatching(/^sg-/)
      expect(sourced(SOURCE!)).toEqual({ ...SETTINGS, CRUCIBLE_EC2_SECURITY_GROUPS: group })
    }

    const crucible = commandLine({ ...SETTINGS, AWS_PROFILE: 'crucible' })
    const dev = await crucible.ready(...wordsOf(DEV))
    const { findings } = await crucible.json<{ findings: { status: string }[] }>(...wordsOf(DOCTOR))
    expect(findings.filter(({ status }) => status !== 'ok')).toEqual([])
    await crucible.json(...wordsOf(PLAN))

    train(STEPS.few)
    expect(await crucible.json(...wordsOf(SUBMIT))).toMatchObject({ job: { state: 'succeeded' } })
    const garbage = await crucible.json<{ verdicts: GarbageVerdict[] }>('gc', '--grace', '1s')
    expect(garbage.verdicts).toMatchObject([{ kind: 'template', action: 'ended' }])

    train(STEPS.many)
    const { id } = await crucible.json<{ id: string }>(...wordsOf(SUBMIT!.replace(' --follow', '')))
    const isAlive = (): boolean => cloud.instances().some(({ state }) => state === 'running')
    await until(isAlive, PATIENCE_MS)
    await crucible.json('cancel', id)
    await until(() => !isAlive(), PATIENCE_MS)
    await until(async () => (await crucible.json<JobView>('show', id)).state === 'cancelled', PATIENCE_MS)

    dev.child.kill('SIGINT')
    expect(await dev.ended).toMatchObject({ exitCode: 0 })
    const denied = cloud.journal.calls({}).filter(({ outcome }) => /Unauthorized|Denied/.test(outcome))
    expect(denied.map(({ action, caller }) => [action, caller])).toEqual([])
    if (hasMoto) expect(await asOwner().json(...wordsOf(REMOVE), '--yes')).toMatchObject({ isComplete: true })
  }, 300_000)
})

describe('crucible setup while crucible dev --sim runs', () => {
  it.each([
    ['aws', 'AWS_ENDPOINT_URL'],
    ['lambda', 'CRUCIBLE_LAMBDA_ENDPOINT'],
    ['modal', 'CRUCIBLE_MODAL_URL'],
  ])('refuses the simulated account of %s in one sentence', async (provider, address) => {
    const home = join(folder, `simulated-${provider}`)
    const note = {
      pid: process.pid,
      address: testServer().address,
      uiUrl: '',
      environment: { [address]: cloud.endpoint },
      cloud: { url: cloud.endpoint, simulated: ['ec2'] },
    }
    mkdirSync(join(home, 'dev'), { recursive: true })
    writeFileSync(join(home, 'dev/running.json'), JSON.stringify(note))
    const refused = await commandLine({ CRUCIBLE_HOME: home }).run('setup', provider, '--yes')
    expect(refused).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('The account is the simulated one of the running `crucible dev --sim`'),
    })
  })
})
