import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { Backend } from '../../../backends/backend'
import { machineEnvironment } from '../../../backends/local/config'
import { endProcesses } from '../../../backends/local/end-processes'
import { inventoryOf } from '../../../backends/local/gpus'
import { createHost } from '../../../backends/local/host'
import { scanProcesses, type ProcessIdentity, type ProcessInfo } from '../../../backends/local/processes'
import { machineOfGroup, mayBelongTo } from '../../../backends/local/processes-linux'
import { createPsReader, parsePs } from '../../../backends/local/processes-ps'
import { runProgram } from '../../../backends/local/programs'
import type { MachineRecord } from '../../../backends/local/records'
import type { LaunchOutcome } from '../../../core/activities'
import type { Order } from '../../../core/job/plan'
import { until } from '../../support/until'
import { patiently } from '../harness'
import type { WantedOrder } from '../harness'
import { newJobId, type OrderOptions } from '../orders'
import { LocalHarness, processesMarked } from './harness'
import { STAND_IN } from './runners'
import { patient } from '../../support/patience'

let h: LocalHarness
let programs: string
beforeEach(async () => {
  h = await LocalHarness.make(STAND_IN)
  programs = join(h.directory, 'bin')
  await mkdir(programs)
})
afterEach(() => h.dispose())

/** Puts a program of this name first on the path of the machines. */
async function install(name: string, script: string): Promise<void> {
  await writeFile(join(programs, name), `#!/bin/sh\n${script}\n`)
  await chmod(join(programs, name), 0o755)
}

function environment(): Record<string, string> {
  return { ...machineEnvironment(), PATH: `${programs}${delimiter}${process.env.PATH}` }
}

const withPrograms = (): Promise<Backend> => h.reopen({ environment: environment() })

async function launch(
  backend: Backend,
  wanted: WantedOrder & Partial<OrderOptions> = {},
): Promise<LaunchOutcome> {
  h.backend = backend
  return backend.launch(await h.order(wanted), patiently())
}

it("the local backend says that jobs of an ordinary user's workers can read each other", async () => {
  const getuid = jest.spyOn(process as { getuid: () => number }, 'getuid').mockReturnValue(1_000)
  try {
    const [offer] = await h.backend.offers({}, patiently())
    expect(offer!.sharesUser).toBe(true)
    expect(await h.backend.check(patiently())).toContainEqual({
      severity: 'warning',
      message: expect.stringMatching(
        /Local jobs without an `image` run as one user: .* the deployment's key/,
      ),
      remedy: expect.stringContaining('run the workers as root'),
    })
  } finally {
    getuid.mockRestore()
  }
})

const SMI = `cat <<'END'
0, GPU-aaaa1111, Tesla V100-SXM2-16GB, 16384
1, GPU-bbbb2222, Tesla V100-SXM2-16GB, 16384
2, GPU-cccc3333, NVIDIA Quadro 9000, with commas, 49152
END`

describe('GPUs', () => {
  it('are offered by their known name, with the memory that the driver reports', async () => {
    await install('nvidia-smi', SMI)
    const backend = await withPrograms()
    const [offer] = await backend.offers({ accelerators: ['V100'], gpuMemoryGiB: { min: 15 } }, patiently())
    expect(offer!.shape).toMatchObject({ gpus: 2, accelerator: 'V100', gpuMemoryGiB: 16 })
    const [large] = await backend.offers({ gpuMemoryGiB: { min: 40 } }, patiently())
    expect(large!.shape).toMatchObject({ gpus: 1, accelerator: 'Quadro 9000, with commas', gpuMemoryGiB: 48 })
    const [single] = await backend.offers({ gpus: { min: 1, max: 1 } }, patiently())
    expect(single!.shape).toMatchObject({ gpus: 1, accelerator: 'V100' })
    // Too little is shown as it is: the planner says what it lacks.
    const [tooSmall] = await backend.offers({ gpuMemoryGiB: { min: 80 } }, patiently())
    expect(tooSmall!.shape).toMatchObject({ gpus: 2, accelerator: 'V100', gpuMemoryGiB: 16 })
    const [tooFew] = await backend.offers({ gpus: { min: 3 } }, patiently())
    expect(tooFew!.shape).toMatchObject({ gpus: 2 })
    expect(await backend.check(patiently())).toEqual([])
  })

  it('are given to one job each, shown to it alone, and come back', async () => {
    await install('nvidia-smi', SMI)
    const backend = await withPrograms()
    const seen = join(h.directory, 'seen')
    const wanted = {
      resources: { gpus: { min: 1 }, accelerators: ['V100'] },
      run: `echo "$CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES" >> '${seen}'; exec sleep 600`,
    }
    const first = await launch(backend, wanted)
    await until(() => existsSync(seen))
    await launch(backend, wanted)
    const outcome = await launch(backend, wanted)
    expect(outcome).toMatchObject({
      kind: 'refused',
      failure: { class: 'capacity', message: 'this host is full: 0 of 2 GPUs free, the job takes 1' },
    })
    await launch(backend, { run: wanted.run })
    await until(() => readFileSync(seen, 'utf8').split('\n').length === 4)
    const lines = readFileSync(seen, 'utf8').split('\n')
    expect(lines.sort()).toEqual(['', 'PCI_BUS_ID ', 'PCI_BUS_ID 0', 'PCI_BUS_ID 1'])
    if (first.kind !== 'launched') throw new Error(first.kind)
    await backend.terminate(first.handle, patiently())
    const [offer] = await backend.offers(wanted.resources, patiently())
    expect(offer).toMatchObject({ availability: 'available' })
  })

  it('that the driver cannot read are said to be in trouble, the others are used', async () => {
    const lost = '0, GPU-a, Tesla T4, 15360\n1, [Unknown Error], [Unknown Error], [GPU is lost]\n'
    const { gpus, trouble } = inventoryOf({ kind: 'answered', output: lost })
    expect(gpus).toEqual([{ index: 0, accelerator: 'T4', memoryGiB: 15 }])
    expect(trouble).toContain('GPU is lost')
    await install(
      'nvidia-smi',
      'echo "NVIDIA-SMI has failed because it could not talk to the driver" >&2; exit 9',
    )
    const [problem] = await (await withPrograms()).check(patiently())
    expect(problem).toMatchObject({
      severity: 'warning',
      message: expect.stringContaining('could not talk to the driver'),
    })
  })

  it('hidden from us are hidden from our jobs', () => {
    const answer = {
      kind: 'answered',
      output: '0, GPU-aa, Tesla T4, 15360\n1, GPU-bb, Tesla T4, 15360\n',
    } as const
    const indexes = (visible?: string): number[] => inventoryOf(answer, visible).gpus.map((gpu) => gpu.index)
    expect(indexes()).toEqual([0, 1])
    expect(indexes('1')).toEqual([1])
    expect(indexes('GPU-aa')).toEqual([0])
    expect(indexes('')).toEqual([])
    expect(inventoryOf({ kind: 'answered', output: 'No devices were found\n' })).toEqual({ gpus: [] })
    expect(inventoryOf({ kind: 'missing', message: 'was not found' })).toEqual({ gpus: [] })
  })
})

describe('Python', () => {
  it('that is missing or too old stands in the way, and says so before anything is made', async () => {
    await install('python-old', 'echo 3.7')
    const cases = [
      { python: 'python-old', message: 'the runner requires Python 3.8 or newer, but `python-old` is 3.7' },
      {
        python: 'no-python',
        message: 'the runner requires Python 3.8 or newer, but `no-python` was not found',
      },
    ]
    for (const { python, message } of cases) {
      const backend = await h.reopen({ python, environment: environment() })
      expect(await backend.check(patiently())).toContainEqual(
        expect.objectContaining({
          severity: 'error',
          message,
          remedy: expect.stringContaining('CRUCIBLE_LOCAL_PYTHON'),
        }),
      )
      const outcome = await launch(backend)
      expect(outcome).toMatchObject({ kind: 'refused', failure: { class: 'invalid', message } })
    }
    expect(await h.backend.list('test', patiently())).toEqual([])
  })

  it('that vanishes before the start leaves nothing of the machine', async () => {
    await install('python-once', 'rm "$0"; echo 3.12')
    const backend = await h.reopen({ python: 'python-once', environment: environment() })
    const order = await h.order({ resources: { cpus: { min: 4 } } })
    const failure = { class: 'invalid', message: expect.stringContaining('cannot start') }
    expect(await backend.launch(order, patiently())).toMatchObject({ kind: 'refused', failure })
    expect(await backend.list('test', patiently())).toEqual([])
    expect(await h.backend.launch(order, patiently())).toMatchObject({ kind: 'launched' })
  })
})

describe('a caller who leaves', () => {
  it('while a helper program is asked hears that, and nothing about the program', async () => {
    await install('python-slow', `touch '${programs}/asked'; exec sleep 600`)
    const backend = await h.reopen({ python: 'python-slow', environment: environment() })
    const order = await h.order()
    const caller = new AbortController()
    const launching = backend.launch(order, caller)
    const checking = backend.check(caller)
    void launching.catch(() => undefined)
    void checking.catch(() => undefined)
    await until(() => existsSync(join(programs, 'asked')))
    caller.abort()
    const left = { failure: { class: 'transient', message: 'the caller stopped waiting' } }
    await expect(launching).rejects.toMatchObject(left)
    await expect(checking).rejects.toMatchObject(left)
  })
})

describe('images', () => {
  it('need a container engine that answers', async () => {
    await install('docker', 'exit 1')
    const without = await withPrograms()
    expect(without.capabilities.imageRunner).toBe('none')
    const outcome = await launch(without, { runner: { image: 'pytorch' } })
    expect(outcome).toMatchObject({ kind: 'refused', failure: { class: 'invalid' } })
  })

  it('have their containers ended with the machine', async () => {
    const log = join(h.directory, 'docker.log')
    await install(
      'docker',
      `echo "$@" >> '${log}'\ncase $1 in version) echo 27.0;; ps) echo c1; echo c2;; esac`,
    )
    const backend = await withPrograms()
    expect(backend.capabilities.imageRunner).toBe('runner')
    const outcome = await launch(backend, { runner: { image: 'pytorch' } })
    if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
    await backend.terminate(outcome.handle, patiently())
    const calls = readFileSync(log, 'utf8')
    expect(calls).toContain(`ps -aq --filter label=crucible.machine=${outcome.handle.id} `)
    expect(calls).toContain('rm --force c1 c2\n')
  })
})

describe('the root', () => {
  it('that cannot be written to stands in the way, and every order is refused', async () => {
    const forbidden = process.platform === 'linux' ? '/sys/crucible-test' : '/System/crucible-test'
    const backend = await h.reopen({ root: forbidden })
    const refused = {
      kind: 'refused',
      failure: { class: 'auth', message: expect.stringContaining(forbidden) },
    }
    expect(await backend.launch(await h.order(), patiently())).toMatchObject(refused)
    const file = join(h.directory, 'file')
    await writeFile(file, '')
    const below = await h.reopen({ root: join(file, 'root') })
    expect(await below.check(patiently())).toContainEqual(
      expect.objectContaining({ severity: 'error', message: expect.stringContaining('not a directory') }),
    )
    expect(await below.launch(await h.order(), patiently())).toMatchObject({
      kind: 'refused',
      failure: { class: 'invalid' },
    })
  })

  it('with a full disk is full, and says so', async () => {
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
    const backend = await h.reopen({}, { fetchRunner: () => Promise.reject(full) })
    expect(await backend.launch(await h.order(), patiently())).toMatchObject({
      kind: 'refused',
      failure: {
        class: 'capacity',
        code: 'ENOSPC',
        message: expect.stringMatching(/^the disk is full: /),
        hint: expect.stringContaining('CRUCIBLE_LOCAL_ROOT'),
      },
    })
    expect(await backend.list('test', patiently())).toEqual([])
  })

  it('with a damaged record keeps working, and check says which', async () => {
    const id = `${newJobId()}-1`
    const folder = join(h.root, 'machines', id)
    await mkdir(folder)
    await writeFile(join(folder, 'machine.json'), '')
    expect(await h.backend.check(patiently())).toContainEqual(
      expect.objectContaining({ severity: 'warning', message: `${join(folder, 'machine.json')} is damaged` }),
    )
    const outcome = await launch(h.backend)
    if (outcome.kind !== 'launched') throw new Error(outcome.kind)
    expect(await h.backend.list('test', patiently())).toHaveLength(1)
    const handles = [{ ...outcome.handle, id }, outcome.handle]
    const detail = expect.stringContaining('damaged')
    expect(await h.backend.observe(handles, patiently())).toEqual([
      { state: 'running', detail },
      { state: 'running' },
    ])
    await expect(h.backend.terminate(handles[0]!, patiently())).rejects.toMatchObject({ class: 'invalid' })
    await rm(join(folder, 'machine.json'))
    expect(await h.backend.check(patiently())).toContainEqual(
      expect.objectContaining({ message: `${folder} is not a machine's directory` }),
    )
  })
})

describe('the runner program', () => {
  it('must have the digest that the order names', async () => {
    const order = { ...(await h.order()), runnerSha256: 'f'.repeat(64) }
    const outcome = await h.backend.launch(order, patiently())
    expect(outcome).toMatchObject({
      kind: 'refused',
      failure: { class: 'invalid', message: expect.stringContaining('digest') },
    })
    expect(await h.backend.find(order.attemptId, patiently())).toEqual({ kind: 'absent' })
  })

  it('that the store does not give now may be asked for again', async () => {
    const backend = await h.reopen({}, { fetchRunner: () => Promise.reject(new Error('no route to host')) })
    const call = backend.launch(await h.order(), patiently())
    await expect(call).rejects.toMatchObject({
      failure: { class: 'transient', message: expect.stringContaining('no route') },
    })
  })

  it('gets the key of its secrets in a file that only we can read', async () => {
    const key = 'ab'.repeat(32)
    const backend = await h.reopen({}, { secretKeyOf: () => key })
    const outcome = await launch(backend)
    if (outcome.kind !== 'launched') throw new Error(outcome.kind)
    const path = join(h.root, 'machines', outcome.handle.id, 'secret.key')
    expect(readFileSync(path, 'utf8')).toBe(key)
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })
})

describe('the runner', () => {
  it('in a file that only its user can read, and learns the path', async () => {
    const asked: string[] = []
    const grantFile = async ({ attemptId }: Order): Promise<string> => {
      asked.push(attemptId)
      return 'sealed'
    }
    const outcome = await launch(await h.reopen({}, { grantFile }))
    if (outcome.kind !== 'launched') throw new Error(outcome.kind)
    const path = join(h.root, 'machines', outcome.handle.id, 'grant.json')
    expect(readFileSync(path, 'utf8')).toBe('sealed')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(asked).toEqual([outcome.handle.attemptId])
    const [pid] = processesMarked(outcome.handle.attemptId)
    const command = execFileSync('ps', ['-ww', '-o', 'args=', '-p', String(pid)], { encoding: 'utf8' })
    expect(command).toContain(`--grant-file ${path}`)
  })

  it('sees nothing of our environment but what helps to find programs and the network', async () => {
    const file = join(h.directory, 'environment')
    const order = await h.order({ run: `env > '${file}.part'; mv '${file}.part' '${file}'; exec sleep 600` })
    const secret = `secret-${order.jobId}`
    Object.assign(process.env, {
      AWS_SECRET_ACCESS_KEY: secret,
      TEMPORAL_API_KEY: secret,
      TEST_proxy: 'passed',
    })
    try {
      await (await h.reopen()).launch(order, patiently())
      await until(() => existsSync(file))
      const lines = readFileSync(file, 'utf8').split('\n')
      expect(lines).toContain('TEST_proxy=passed')
      expect(lines).toContain(`CRUCIBLE_MACHINE=${order.attemptId}`)
      expect(lines.filter((line) => line.includes(secret))).toEqual([])
    } finally {
      delete process.env['AWS_SECRET_ACCESS_KEY']
      delete process.env['TEMPORAL_API_KEY']
      delete process.env['TEST_proxy']
    }
  })
})

describe('processes', () => {
  const info = (pid: number, more: Partial<ProcessInfo> = {}): ProcessInfo => ({
    pid,
    parent: 1,
    group: pid,
    started: `t${pid}`,
    isDefunct: false,
    ...more,
  })

  const membersOf = (all: ProcessInfo[], machine: string, first?: ProcessIdentity): Promise<ProcessInfo[]> =>
    scanProcesses({ all: async () => all, one: async () => undefined }).ofMachine({ name: machine }, first)

  it('of a machine are the marked, their children and their sessions, and no others', async () => {
    const all = [
      info(process.pid, { group: 7 }),
      info(1_000_001, { machine: 'a', group: 10 }),
      info(1_000_002, { parent: 1_000_001 }),
      info(1_000_003, { parent: 1_000_002 }),
      info(1_000_004, { group: 10 }),
      info(1_000_005, { machine: 'b' }),
      info(1_000_006, { machine: 'a', isDefunct: true }),
      info(1_000_007, { parent: process.pid, group: 7 }),
      info(1_000_008),
    ]
    const pids = (await membersOf(all, 'a')).map((one) => one.pid - 1_000_000)
    expect(pids.sort()).toEqual([1, 2, 3, 4])
    expect(await membersOf(all, 'c', { pid: 1_000_008, started: 't1000008' })).toHaveLength(1)
    expect(await membersOf(all, 'c', { pid: 1_000_008, started: 'earlier' })).toEqual([])
    const within = [...all, info(1_000_009, { machine: 'd', group: 7 })]
    expect((await membersOf(within, 'd')).map((one) => one.pid)).toEqual([1_000_009])
  })

  it('of a machine are also those in its control group, whatever their environment says', async () => {
    const all = [
      info(1_000_001, { groupOf: 'a' }),
      info(1_000_002, { groupOf: 'a', machine: 'b' }),
      info(1_000_003, { groupOf: 'b' }),
    ]
    expect((await membersOf(all, 'a')).map((one) => one.pid)).toEqual([1_000_001, 1_000_002])
  })

  it.each([
    ['version 2', '0::/system.slice/worker.service/crucible-job-a-1\n', 'job-a-1'],
    ['version 1', '9:name=systemd:/crucible-job-a-1\n8:pids:/\n0::/\n', 'job-a-1'],
    ['a group of the job below it', '0::/crucible-job-a-1/inner\n', 'job-a-1'],
    ['a runner inside a job', '0::/crucible-job-a-1/crucible-job-b-2\n', 'job-b-2'],
    ['no group of Crucible', '0::/user.slice/not-crucible-a\n', undefined],
  ])('belong to the machine that /proc/PID/cgroup names: %s', (_, text, machine) => {
    expect(machineOfGroup(text)).toBe(machine)
  })

  it.each([
    ['its own', 1_000, true],
    ['one through sudo', 0, true],
    ["another user's, in a group with the machine's name", 1_001, false],
  ])('belong to a machine of an ordinary user only if they can be: %s', (_, real, is) => {
    expect(mayBelongTo(1_000, `Name:\tsleep\nUid:\t${real}\t0\t0\t0\n`)).toBe(is)
    expect(mayBelongTo(0, `Name:\tsleep\nUid:\t${real}\t0\t0\t0\n`)).toBe(true)
  })

  it('are read through ps without /proc', async () => {
    const machine = `${newJobId()}-1`
    const child = spawn('sleep', ['600'], {
      env: { PATH: process.env.PATH, CRUCIBLE_MACHINE: machine },
      detached: true,
    })
    try {
      const reader = createPsReader(process.platform === 'darwin' ? 'darwin' : 'freebsd')
      const marked = (await reader.all()).filter((one) => one.machine === machine)
      expect(marked).toMatchObject([
        { pid: child.pid, parent: process.pid, group: child.pid, isDefunct: false },
      ])
      expect(await reader.one(child.pid!)).toEqual(marked[0])
      expect(Math.abs(Date.parse(`${marked[0]!.started} UTC`) - Date.now())).toBeLessThan(patient(60_000))
    } finally {
      child.kill('SIGKILL')
    }
    expect(parsePs('  PID what is this\n\n')).toEqual([])
    const [line] = parsePs(
      '  412     1   412 Ss   Sat Nov  1 01:14:00 2026     python3 x CRUCIBLE_MACHINE=job-a-1 B=2\n',
    )
    expect(line).toEqual({
      pid: 412,
      parent: 1,
      group: 412,
      isDefunct: false,
      started: 'Sat Nov 1 01:14:00 2026',
      machine: 'job-a-1',
    })
  })

  it('that no signal ends are named in an error that asks for another try', async () => {
    const immortal = info(2 ** 22 + 1, { machine: 'job-immortal-1' })
    const host = createHost(h.config, h.deps())
    const processes = (): ReturnType<typeof host.processes> => ({
      identify: async () => immortal,
      isAlive: async () => true,
      ofMachine: async () => [immortal],
    })
    const machine = { owner: { attemptId: 'job-immortal-1' }, image: null } as MachineRecord
    await expect(endProcesses({ ...host, processes }, machine)).rejects.toMatchObject({
      failure: { class: 'transient', message: expect.stringContaining(String(immortal.pid)) },
    })
  })
})

describe('helper programs', () => {
  it('that hang are given up', async () => {
    const answer = await runProgram('sleep', ['600'], { env: { PATH: process.env.PATH! }, timeoutMs: 50 })
    expect(answer).toEqual({ kind: 'unanswered', message: 'did not answer within 0.05 s' })
  })
})
