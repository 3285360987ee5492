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
import type { BackendError } from '../../../../backends/errors'
import type { Ec2Deps } from '../../../../backends/ec2/host'
import { EC2_CAPABILITIES } from '../../../planner/catalogs'
import type { AgentAnswer, AgentCommand } from '../../../../packages/small-cloud/src/machines/machine'
import { RETRIED_IN_PLACE } from '../../../../core/failure'
import type { MachineHandle } from '../../../../core/handle'
import type { Order } from '../../../../core/job/plan'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../../core/time/time'
import { patiently } from '../../harness'
import { Ec2Harness, type PaperHarness, type PaperOptions } from '../harness'
import { jobRootBeside } from '../../../support/job-root'

const PROGRAM = 'the runner program'
/** A unit of the runner has begun at once. */
const BEGINS = 'for each; do [ "$before" != --root ] || : >"$each/runner.json"; before=$each; done'
const KEY = '0123456789abcdef'.repeat(4)
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

interface Sent {
  Comment: string
  Parameters: { commands: string[]; executionTimeout: [string] }
}

/** Commands really run, by sh and Python, with programs of a machine that only note their arguments. */
describe('the start of a runner on EC2', () => {
  let folder: string
  let state: string
  let programUrl: string
  let h: PaperHarness
  let order: Order
  let handle: MachineHandle

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'crucible-ec2-'))
    state = join(folder, 'state')
    mkdirSync(join(folder, 'bin'))
    program('systemd-run', `printf "%s\\n" "$@" >"$LOG/systemd-run"; echo x >>"$LOG/runs"; ${BEGINS}`)
    program('systemctl', 'test -e "$LOG/active"')
    writeFileSync(join(folder, 'runner.pyz'), PROGRAM)
    programUrl = pathToFileURL(join(folder, 'runner.pyz')).href
    await begin({ runnerUrl: async () => programUrl, secretKeyOf: () => KEY })
  })
  afterEach(async () => {
    await h.dispose()
    rmSync(folder, { recursive: true, force: true })
  })

  async function begin(deps: Partial<Ec2Deps>): Promise<void> {
    h = await Ec2Harness.onPaper({ deps })
    order = await h.order({ runnerSha256: sha256(PROGRAM) })
    handle = await h.launched(order)
    await h.clock.advance(1_000)
    h.machines.get(handle.id)!.answer = async (command) => run(command)
  }

  function program(name: string, script: string): void {
    const path = join(folder, 'bin', name)
    writeFileSync(path, `#!/bin/sh\n${script}\n`)
    chmodSync(path, 0o755)
  }

  /** As the agent does: the lines become a script. */
  function run({ lines }: AgentCommand): AgentAnswer {
    const script = join(folder, 'script.sh')
    writeFileSync(script, lines.join('\n'))
    const PATH = `${join(folder, 'bin')}:${process.env['PATH']}`
    const env = { PATH, LOG: folder, STATE_DIRECTORY: state, AWS_ENDPOINT_URL: 'http://127.0.0.1:1' }
    const done = spawnSync('sh', [script], { env, encoding: 'utf8' })
    return { exitCode: done.status ?? -1, stdout: done.stdout, stderr: done.stderr, timedOut: false }
  }

  const start = (of = order, by = h.backend): Promise<void> => h.meanwhile(by.start!(handle, of, patiently()))
  const root = (): string => join(state, order.attemptId)
  const runs = (): number => readFileSync(join(folder, 'runs'), 'utf8').trim().split('\n').length
  const sent = (): Sent[] => h.calls('SendCommand').map(({ parameters }) => parameters as Sent)
  const purposes = (): unknown[] => sent().map(({ Comment }) => Comment.split(' ')[1])

  const withoutKey = () => h.reopen({}, { secretKeyOf: undefined })

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
      'python3',
      '-IS',
      join(root(), 'crucible-runner.pyz'),
      'run',
      '--store',
      order.storeUrl,
      '--job',
      order.jobId,
      '--attempt',
      '1',
      '--root',
      root(),
      '--job-root',
      jobRootBeside(root(), order.jobId),
      '--power-off',
      `test -e ${root()}/runner.json || sleep 5; shutdown -h now`,
      '--secret-key-file',
      join(root(), 'secret.key'),
    ])
    expect(readFileSync(join(root(), 'crucible-runner.pyz'), 'utf8')).toBe(PROGRAM)
  })

  it('names a store that refuses the machine, in the words of its runner', async () => {
    program('systemd-run', ':')
    program('journalctl', 'echo "the store refuses this machine: GET s3://b/k: 403 AccessDenied"')
    await expect(start()).rejects.toMatchObject({
      failure: {
        class: 'auth',
        code: 'store',
        message: 'The store refuses this machine: GET s3://b/k: 403 AccessDenied.',
      },
    })
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
        .map(({ Parameters }) => specIn(Parameters.commands))
        .join()
    expect(logged).not.toContain(KEY)
    expect(specIn(sent().at(-1)!.Parameters.commands)).toMatch(/"seal":\{"public"/)
  })

  it('hands credentials for the store over, sealed, and newer ones to a runner that is started again', async () => {
    let grant = '{"sealed": 1}'
    await h.dispose()
    await begin({ runnerUrl: async () => programUrl, secretKeyOf: () => KEY, grantFile: async () => grant })
    const file = join(root(), 'grant.json')
    await start()
    const told = readFileSync(join(folder, 'systemd-run'), 'utf8').trim().split('\n')
    expect(told.slice(-2)).toEqual(['--grant-file', file])
    expect(readFileSync(file, 'utf8')).toBe(grant)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    grant = '{"sealed": 2}'
    await h.clock.advance(60_000)
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
    await h.clock.advance(60_000)
    await start()
    expect(runs()).toBe(1)
    for (const { Comment, Parameters } of sent()) {
      expect(Buffer.byteLength(Parameters.commands.join('\n'))).toBeLessThan(24_000)
      expect(Comment.length).toBeLessThanOrEqual(100)
      expect(Number(Parameters.executionTimeout[0])).toBeLessThanOrEqual(300)
    }
  })

  it('waits for a command that is under way instead of sending another', async () => {
    await start()
    const before = sent().length
    await start()
    expect(sent()).toHaveLength(before)
  })

  it('finds the command whose answer was lost', async () => {
    h.cloud.addFault({ fault: 'lost-answer', times: 1, where: { action: 'SendCommand' } })
    await expect(start()).rejects.toMatchObject({ failure: { class: 'transient' } })
    await start()
    expect(purposes()).toEqual(['prepare', 'start'])
  })

  it('asks once more where an answer was cut short on its way', async () => {
    h.cloud.addFault({ fault: 'command-truncated', chars: 100, times: 1 })
    await expect(start()).rejects.toMatchObject({ class: 'transient' })
    await start()
    expect(purposes()).toEqual(['prepare', 'prepare', 'start'])
  })

  it('continues if nothing of secrets is known', async () => {
    await start(order, await withoutKey())
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
        class: 'unreachable',
        code: 'start-13',
        message: expect.stringContaining('Failed to start transient'),
      },
    ],
    ['there is no Python', () => program('python3', 'exit 127'), { class: 'unreachable', code: 'start-127' }],
  ])('names the owner of the trouble it is when %s', async (_name, breakIt, failure) => {
    breakIt()
    await expect(start(order, await withoutKey())).rejects.toMatchObject({ failure })
  })

  it('shows no signature of an address that could not be read', async () => {
    programUrl = 'http://127.0.0.1:1/runner.pyz?X-Amz-Signature=abc'
    const failed: unknown = await start(order, await withoutKey()).catch((error: unknown) => error)
    expect(String(failed)).not.toContain('Signature')
  }, 30_000)
})

describe('a machine whose agent is not there', () => {
  let h: PaperHarness
  let order: Order
  let handle: MachineHandle
  const begin = async (options: PaperOptions = {}): Promise<void> => {
    h = await Ec2Harness.onPaper(options)
    order = await h.order({ capacityType: 'spot' })
    handle = await h.launched(order)
  }
  afterEach(() => h.dispose())
  const start = (): Promise<void> => h.backend.start!(handle, order, patiently())

  it('is waited for, and asked for again soon while it is young', async () => {
    await begin({ world: { durations: { register: '9.5m' } } })
    await expect(start()).rejects.toMatchObject({ failure: { class: 'transient', retryAfterMs: 250 } })
    await h.clock.advance(4_000)
    await expect(start()).rejects.toMatchObject({ failure: { class: 'transient', retryAfterMs: 1_000 } })
    await h.clock.advance(9 * MINUTE_MS)
    await expect(start()).rejects.toMatchObject({ failure: { class: 'transient', retryAfterMs: 5_000 } })
    await h.clock.advance(MINUTE_MS)
    await h.meanwhile(start())
    expect(h.machines.get(handle.id)!.commands).toHaveLength(1)
  })

  // wire.test.ts has one whose network has no way out.
  it('is given up after ten minutes, with what its profile lacks', async () => {
    await begin({ world: { faults: [{ fault: 'no-agent' }] } })
    await h.clock.advance(10 * MINUTE_MS)
    h.fail('GetInstanceProfile', 'NoSuchEntity', { status: 404, times: 9 })
    await expect(start()).rejects.toMatchObject({
      failure: {
        class: 'unreachable',
        message: expect.stringMatching(/agent \(SSM\) has not registered within 10m/),
        hint: expect.stringContaining('no instance profile crucible-machine'),
      },
    })
  })

  it('is waited for on a machine whose memory is checked for as long as it may be', async () => {
    const type = { vcpus: 4, memoryGiB: 2_048, usdPerHour: 1.006 }
    const { perGiB, highMs } = EC2_CAPABILITIES.boot!
    const durations = { register: highMs, registerPerGiB: perGiB!.highMs }
    const accelerator = { name: 'A10G', count: 1, memoryMiB: 22_888 }
    await begin({ world: { durations, types: { 'g5.xlarge': { ...type, accelerator } } } })
    await h.clock.advance(14 * MINUTE_MS)
    await expect(start()).rejects.toMatchObject({ failure: { class: 'transient' } })
    await h.clock.advance(2 * MINUTE_MS)
    await h.meanwhile(start())
    expect(h.machines.get(handle.id)!.commands).toHaveLength(1)
  })

  it('is waited for longer on a machine with much memory', async () => {
    const accelerator = { name: 'A10G', count: 1, memoryMiB: 22_888 }
    const type = { vcpus: 4, memoryGiB: 2_048, usdPerHour: 1.006, accelerator }
    await begin({ world: { faults: [{ fault: 'no-agent' }], types: { 'g5.xlarge': type } } })
    await h.clock.advance(18 * MINUTE_MS)
    await expect(start()).rejects.toMatchObject({ failure: { class: 'transient' } })
    await h.clock.advance(MINUTE_MS)
    await expect(start()).rejects.toMatchObject({
      failure: { message: expect.stringMatching(/has not registered within 18m 58s/) },
    })
  })

  it.each([2 * HOUR_MS, -2 * HOUR_MS, 30 * DAY_MS])(
    'is waited for ten minutes when the clock is set by %d ms',
    async (stepMs) => {
      await begin({ world: { faults: [{ fault: 'no-agent' }] } })
      let [aheadMs, monotonicMs] = [0, 0]
      const nowMs = h.clock.nowMs()
      const deps = { clock: () => nowMs + aheadMs, monotonic: () => monotonicMs }
      const backend = await h.reopen({}, deps)
      const startBy = (): Promise<void> => backend.start!(handle, order, patiently())
      await expect(startBy()).rejects.toMatchObject({ failure: { class: 'transient' } })
      aheadMs = stepMs
      monotonicMs = 9 * MINUTE_MS
      await expect(startBy()).rejects.toMatchObject({ failure: { class: 'transient' } })
      monotonicMs = 10 * MINUTE_MS
      await expect(startBy()).rejects.toMatchObject({ failure: { class: 'unreachable' } })
    },
  )

  it('has ended, and is said to have, as soon as the provider says so', async () => {
    await begin()
    await h.clock.advance(1_000)
    h.cloud.interrupt(handle.id, { isSilent: true })
    await expect(start()).rejects.toMatchObject({ failure: { class: 'interrupted' } })
  })

  it('came to nothing for want of a volume, and that is the quota', async () => {
    await begin({ world: { faults: [{ fault: 'launch-fails', reason: 'Client.VolumeLimitExceeded' }] } })
    await h.clock.advance(1_000)
    await expect(start()).rejects.toMatchObject({
      failure: { class: 'quota', code: 'Client.VolumeLimitExceeded' },
    })
  })

  // The state reasons of terminated instances in the EC2 User Guide, and one that it does not have.
  it.each([
    'Server.InsufficientInstanceCapacity',
    'Server.InternalError',
    'Server.ScheduledStop',
    'Server.SpotInstanceShutdown',
    'Server.SpotInstanceTermination',
    'Client.InstanceInitiatedShutdown',
    'Client.InstanceTerminated',
    'Client.InternalError',
    'Client.InvalidSnapshot.NotFound',
    'Client.UserInitiatedShutdown',
    'Client.VolumeLimitExceeded',
    'Server.SomethingNew',
  ])('has ended for good with %s: the start is never tried again on it', async (reason) => {
    await begin({ world: { faults: [{ fault: 'launch-fails', reason }] } })
    await h.clock.advance(1_000)
    const { failure } = (await start().catch((error: unknown) => error)) as BackendError
    expect(failure.message).toMatch(/^the machine ended before its runner was started/)
    expect(RETRIED_IN_PLACE).not.toContain(failure.class)
  })
})
