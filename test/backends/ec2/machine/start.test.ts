import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { CommandRequest } from '../../../../backends/ec2/sdk/api-commands'
import type { MachineHandle } from '../../../../core/handle'
import type { Order } from '../../../../core/job/plan'
import { patiently } from '../../harness'
import { Ec2Harness } from '../harness'

const PROGRAM = 'the runner program'
const KEY = '0123456789abcdef'.repeat(4)
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Commands really run, by sh and Python, with programs of a machine that only note their arguments. */
describe('the start of a runner on EC2', () => {
  let folder: string
  let state: string
  let programUrl: string
  let h: Ec2Harness
  let order: Order
  let handle: MachineHandle

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'crucible-ec2-'))
    state = join(folder, 'state')
    mkdirSync(join(folder, 'bin'))
    program('systemd-run', 'printf "%s\\n" "$@" >"$LOG/systemd-run"; echo x >>"$LOG/runs"')
    program('systemctl', 'test -e "$LOG/active"')
    writeFileSync(join(folder, 'runner.pyz'), PROGRAM)
    programUrl = pathToFileURL(join(folder, 'runner.pyz')).href
    h = new Ec2Harness({}, { runnerUrl: async () => programUrl, secretKeyOf: () => KEY })
    h.aws.onCommand = (_machine, request) => run(request)
    order = await h.order({ runnerSha256: sha256(PROGRAM) })
    handle = await launched()
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  function program(name: string, script: string): void {
    const path = join(folder, 'bin', name)
    writeFileSync(path, `#!/bin/sh\n${script}\n`)
    chmodSync(path, 0o755)
  }

  /** As the agent does: the lines become a script. */
  function run({ lines }: CommandRequest): {
    status: string
    exitCode: number
    stdout: string
    stderr: string
  } {
    const script = join(folder, 'script.sh')
    writeFileSync(script, lines.join('\n'))
    const PATH = `${join(folder, 'bin')}:${process.env['PATH']}`
    const env = { PATH, LOG: folder, STATE_DIRECTORY: state, AWS_ENDPOINT_URL: 'http://127.0.0.1:1' }
    const done = spawnSync('sh', [script], { env, encoding: 'utf8' })
    const exitCode = done.status ?? -1
    return {
      status: exitCode === 0 ? 'Success' : 'Failed',
      exitCode,
      stdout: done.stdout,
      stderr: done.stderr,
    }
  }

  const launched = async (): Promise<MachineHandle> => {
    const outcome = await h.backend.launch(order, patiently())
    if (outcome.kind !== 'launched') throw new Error(outcome.kind)
    return outcome.handle
  }
  const start = (of = order): Promise<void> => h.backend.start!(handle, of, patiently())
  const root = (): string => join(state, order.attemptId)
  const runs = (): number => readFileSync(join(folder, 'runs'), 'utf8').trim().split('\n').length
  const sent = (): CommandRequest[] =>
    h.aws.calls.filter(({ name }) => name === 'send').map(({ detail }) => detail as CommandRequest)

  it('makes it a unit of its own, with all that it must know', async () => {
    await start()
    const told = readFileSync(join(folder, 'systemd-run'), 'utf8').trim().split('\n')
    expect(told).toEqual(
      expect.arrayContaining([
        '--unit=crucible-runner',
        '--property=KillMode=mixed',
        '--property=OOMPolicy=continue',
        '--setenv=AWS_REGION=us-east-1',
        '--setenv=AWS_ENDPOINT_URL=http://127.0.0.1:1',
      ]),
    )
    const at = told.indexOf('python3')
    expect(told.slice(at)).toEqual([
      ...['python3', '-IS', join(root(), 'crucible-runner.pyz'), 'run', '--store', order.storeUrl],
      ...['--job', order.jobId, '--attempt', '1', '--root', root()],
      ...['--power-off', 'shutdown -h now', '--secret-key-file', join(root(), 'secret.key')],
    ])
    expect(readFileSync(join(root(), 'crucible-runner.pyz'), 'utf8')).toBe(PROGRAM)
  })

  it('hands the key of the secrets over so that no log of commands has it', async () => {
    await start()
    const file = join(root(), 'secret.key')
    expect(readFileSync(file, 'utf8').trim()).toBe(KEY)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(existsSync(join(root(), 'exchange'))).toBe(false)
    const logged =
      JSON.stringify(sent()) +
      sent()
        .map(({ lines }) => specIn(lines))
        .join()
    expect(logged).not.toContain(KEY)
    expect(specIn(sent().at(-1)!.lines)).toMatch(/"seal":\{"public"/)
  })

  it('hands credentials for the store over, sealed, and newer ones to a runner that is started again', async () => {
    let [grant, nowMs] = ['{"sealed": 1}', Date.now()]
    const deps = { runnerUrl: async () => programUrl, secretKeyOf: () => KEY, grantFile: async () => grant }
    h = new Ec2Harness({}, { ...deps, clock: () => nowMs })
    h.aws.onCommand = (_machine, request) => run(request)
    order = await h.order({ runnerSha256: sha256(PROGRAM) })
    handle = await launched()
    const file = join(root(), 'grant.json')
    await start()
    const told = readFileSync(join(folder, 'systemd-run'), 'utf8').trim().split('\n')
    expect(told.slice(-2)).toEqual(['--grant-file', file])
    expect(readFileSync(file, 'utf8')).toBe(grant)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    grant = '{"sealed": 2}'
    nowMs += 60_000
    await start()
    expect(readFileSync(file, 'utf8')).toBe(grant)
  })

  function specIn(lines: string[]): string {
    const [, text] = /b64decode\("([^"]+)"\)/.exec(lines.join('\n'))!
    return Buffer.from(text!, 'base64').toString('utf8')
  }

  it('is short, and harmless where the runner is at work', async () => {
    await start()
    writeFileSync(join(folder, 'active'), '')
    await h.open({ clock: () => Date.now() + 60_000 }).start!(handle, order, patiently())
    expect(runs()).toBe(1)
    for (const { lines, comment, runTimeoutMs } of sent()) {
      expect(Buffer.byteLength(lines.join('\n'))).toBeLessThan(16_000)
      expect(comment.length).toBeLessThanOrEqual(100)
      expect(runTimeoutMs).toBeLessThanOrEqual(300_000)
    }
  })

  it('waits for a command that is under way instead of sending another', async () => {
    await start()
    const before = sent().length
    await start()
    expect(sent()).toHaveLength(before)
  })

  it('finds the command whose answer was lost', async () => {
    h.aws.faults.push({ call: 'send', when: 'after' })
    await expect(start()).rejects.toMatchObject({ failure: { class: 'transient' } })
    await start()
    expect(sent().map(({ comment }) => comment.split(' ')[1])).toEqual(['prepare', 'start'])
  })

  it('asks once more where an answer was cut short on its way', async () => {
    let isCut = true
    h.aws.onCommand = (_machine, request) => {
      const answer = run(request)
      if (isCut) answer.stdout = answer.stdout.slice(0, 100)
      isCut = false
      return answer
    }
    await expect(h.backend.start!(handle, order, patiently())).rejects.toMatchObject({ class: 'transient' })
    await h.backend.start!(handle, order, patiently())
    expect(sent().map(({ comment }) => comment.split(' ')[1])).toEqual(['prepare', 'prepare', 'start'])
  })

  it('continues if nothing of secrets is known', async () => {
    h = Object.assign(h, { deps: { runnerUrl: async () => programUrl } })
    await h.open().start!(handle, order, patiently())
    expect(sent()).toHaveLength(1)
    expect(readFileSync(join(folder, 'systemd-run'), 'utf8')).not.toContain('--secret-key-file')
  })

  it.each<[string, () => void, object]>([
    [
      'the program cannot be fetched',
      () => (programUrl = 'file:///nowhere'),
      { class: 'transient', code: 'start-11' },
    ],
    [
      'another program was fetched',
      () => writeFileSync(join(folder, 'runner.pyz'), 'other'),
      { class: 'transient', code: 'start-12' },
    ],
    [
      'systemd refuses',
      () => program('systemd-run', 'echo "Failed to start transient service unit" >&2; exit 1'),
      {
        class: 'unclassified',
        code: 'start-13',
        message: expect.stringContaining('Failed to start transient'),
      },
    ],
    ['there is no Python', () => program('python3', 'exit 127'), { class: 'invalid', code: 'start-127' }],
  ])('names the owner of the trouble it is when %s', async (_name, breakIt, failure) => {
    breakIt()
    h.aws.onCommand = (_machine, request) => run(request)
    h = Object.assign(h, { deps: { runnerUrl: async () => programUrl } })
    await expect(h.open().start!(handle, order, patiently())).rejects.toMatchObject({ failure })
  })

  it('shows no signature of an address that could not be read', async () => {
    programUrl = 'http://127.0.0.1:1/runner.pyz?X-Amz-Signature=abc'
    h = Object.assign(h, { deps: { runnerUrl: async () => programUrl } })
    const failed: unknown = await h.open().start!(handle, order, patiently()).catch((error: unknown) => error)
    expect(String(failed)).not.toContain('Signature')
  }, 30_000)
})

describe('a machine whose agent is not there', () => {
  const MINUTE_MS = 60_000
  let nowMs: number
  let h: Ec2Harness
  let order: Order
  let handle: MachineHandle
  beforeEach(async () => {
    nowMs = Date.now()
    h = new Ec2Harness({}, { clock: () => nowMs })
    h.aws.registersAfterMs = null
    order = await h.order()
    const outcome = await h.backend.launch(order, patiently())
    if (outcome.kind === 'launched') handle = outcome.handle
  })
  const start = (): Promise<void> => h.backend.start!(handle, order, patiently())

  it('is waited for, and asked for again soon while it is young', async () => {
    await expect(start()).rejects.toMatchObject({ failure: { class: 'transient', retryAfterMs: 250 } })
    nowMs = handle.launchedAtMs + 4_000
    await expect(start()).rejects.toMatchObject({ failure: { class: 'transient', retryAfterMs: 1_000 } })
    nowMs += 9 * MINUTE_MS
    await expect(start()).rejects.toMatchObject({ failure: { class: 'transient', retryAfterMs: 5_000 } })
    h.aws.registersAfterMs = 0
    await start()
    expect(h.aws.machinesOf(order.attemptId)[0]!.starts).toBe(1)
  })

  it('is given up after ten minutes, with what its network lacks', async () => {
    nowMs += 10 * MINUTE_MS
    h.aws.defaultRoute = undefined
    await expect(start()).rejects.toMatchObject({
      failure: {
        class: 'unreachable',
        message: expect.stringMatching(/agent \(SSM\) has not registered within 10m/),
        hint: expect.stringMatching(/subnet-a in us-east-1a has no way out.*Give it a route/s),
      },
    })
  })

  it('is given up with what its profile lacks', async () => {
    nowMs += 10 * MINUTE_MS
    h.aws.profile = undefined
    await expect(start()).rejects.toMatchObject({
      failure: {
        class: 'unreachable',
        hint: expect.stringContaining('no instance profile crucible-machine'),
      },
    })
  })

  it('has ended, and is said to have, as soon as the provider says so', async () => {
    h.aws
      .machinesOf(order.attemptId)[0]!
      .end({ code: 'Server.SpotInstanceTermination', message: 'taken back' })
    await expect(start()).rejects.toMatchObject({ failure: { class: 'interrupted' } })
  })

  it('came to nothing for want of a volume, and that is the quota', async () => {
    const reason = { code: 'Client.VolumeLimitExceeded', message: 'too many volumes' }
    const quota = { failure: { class: 'quota', code: 'Client.VolumeLimitExceeded' } }
    h.aws.machinesOf(order.attemptId)[0]!.end(reason)
    await expect(start()).rejects.toMatchObject(quota)
    nowMs += 1_000
    await expect(start()).rejects.toMatchObject(quota)
    expect(await h.backend.observe([handle], patiently())).toMatchObject([
      { state: 'gone', cause: 'failed-to-start', failure: { class: 'quota' } },
    ])
  })
})
