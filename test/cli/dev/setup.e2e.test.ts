/** The first cloud job, as docs/start/first-cloud-job.md prints it, in an account that has nothing. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Connection } from '@temporalio/client'
import type { JobView } from '../../../client'
import type { GarbageVerdict } from '../../../core/messages'
import type { Cloud } from '#small-cloud'
import { emptyAccount, everythingOf } from '../../backends/ec2/setup/accounts'
import { testFolder } from '../../support/folders'
import { freshNamespace } from '../../support/namespace'
import { connectTo, testServer } from '../../support/temporal'
import { until } from '../../support/until'
import { build, CommandLine } from '../process'

const ROOT = join(__dirname, '../../..')
const PAGE = readFileSync(join(ROOT, 'docs/start/first-cloud-job.md'), 'utf8')
const ACCOUNT = readFileSync(join(ROOT, 'docs/reference/aws-account.md'), 'utf8')
/** What is to be typed, in its order. */
const LINES = [...PAGE.matchAll(/```sh\n([^]*?)```/g)].flatMap(([, block]) => block!.trim().split('\n'))
const [SETUP, SOURCE, DEV, DOCTOR, PLAN, SUBMIT, REMOVE] = LINES as [string, ...string[]]
const wordsOf = (line = ''): string[] => line.split(' ').slice(1)

/** Seconds where a deployment has minutes. */
const QUICK = {
  ...{ CRUCIBLE_BEAT: '1s', CRUCIBLE_OBSERVE: '0.5s', CRUCIBLE_GONE_CONFIRM: '1s' },
  ...{ CRUCIBLE_CHECKPOINT_QUIET: '1s', CRUCIBLE_EC2_STALE_FOR: '3s', CRUCIBLE_EC2_TEMPLATES_KEPT: '1s' },
}

/** Far more than anything takes that is waited for, on a machine that does other work. */
const PATIENCE_MS = 100_000
/** A second of work, and work that never ends on its own. */
const STEPS = { few: 100, many: 1_000_000 }

let cloud: Cloud
let folder: string
let environment: Record<string, string>
const opened: CommandLine[] = []

beforeAll(async () => {
  build()
  cloud = await emptyAccount()
  folder = testFolder('five-minutes')
  cpSync(join(ROOT, 'examples/char-lm'), join(folder, 'examples/char-lm'), { recursive: true })
  mkdirSync(join(folder, '.aws'))
  const { accessKeyId, secretAccessKey } = cloud.credentials
  const keys = `[default]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`
  writeFileSync(join(folder, '.aws/credentials'), keys)
  const [profile] = /\[profile crucible\][^`]*/.exec(ACCOUNT)!
  writeFileSync(join(folder, '.aws/config'), profile.replace('ACCOUNT', '111122223333'))
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

describe('an account that has nothing', () => {
  it('runs a job as its workers may, and is as empty as before when it is removed', async () => {
    expect(LINES).toHaveLength(7)
    const before = await everythingOf(cloud)
    expect(await commandLine().json(...wordsOf(SETUP), '--yes')).toMatchObject({ isComplete: true })

    const settings = sourced(SOURCE!)
    const owner = commandLine(settings)
    const crucible = commandLine({ ...settings, AWS_PROFILE: 'crucible' })
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
    const refused = await owner.run(...wordsOf(REMOVE), '--yes')
    expect(refused).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(new RegExp(`1 of its machines .*; 1 job still runs: ${id}`)),
    })
    await crucible.json('cancel', id)
    await until(() => !isAlive(), PATIENCE_MS)
    await until(async () => (await crucible.json<JobView>('show', id)).state === 'cancelled', PATIENCE_MS)

    dev.child.kill('SIGINT')
    expect(await dev.ended).toMatchObject({ exitCode: 0 })
    const denied = cloud.journal.calls({}).filter(({ outcome }) => /Unauthorized|Denied/.test(outcome))
    expect(denied.map(({ action, caller }) => [action, caller])).toEqual([])
    const removed = await owner.json(...wordsOf(REMOVE), '--yes')
    expect(removed).toMatchObject({ isComplete: false })
    expect(await everythingOf(cloud)).toEqual({ ...before, buckets: ['crucible-111122223333-us-east-1'] })
    expect(await owner.json(...wordsOf(REMOVE), '--yes', '--with-data')).toMatchObject({ isComplete: true })
    expect(await everythingOf(cloud)).toEqual(before)
  }, 300_000)
})
