import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, rename, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Backend } from '../../../backends/backend'
import type { MachineHandle } from '../../../core/handle'
import type { RunnerResult } from '../../../core/documents'
import type { Order } from '../../../core/job/plan'
import { parseAttemptId } from '../../../core/queues'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { layout } from '../../../storage/layout'
import { until } from '../../support/until'
import { patiently } from '../harness'
import { LocalHarness } from './harness'
import { useRealRunner } from './runners'

const realRunner = useRealRunner()

let h: LocalHarness
beforeEach(async () => {
  h = await LocalHarness.make(realRunner())
})
afterEach(() => h.dispose())

async function launch(order: Order, by = h.backend): Promise<MachineHandle> {
  const outcome = await by.launch(order, patiently())
  if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
  return outcome.handle
}

/** Launches a machine whose workload has begun. */
async function running(...args: Parameters<LocalHarness['order']>): Promise<MachineHandle> {
  const order = await h.order(...args)
  const handle = await launch(order)
  await h.startsOf(order.attemptId)
  return handle
}

/** A launch that has its runner, and continues once it is released. */
async function slowLaunch(
  order: Order,
): Promise<{ backend: Backend; launching: Promise<MachineHandle>; release: () => void }> {
  const deps = h.deps()
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  const backend = await h.reopen(
    {},
    {
      fetchRunner: async (sha256, toPath) => {
        await deps.fetchRunner(sha256, toPath)
        await released
      },
    },
  )
  const launching = launch(order, backend)
  await until(() => readdirSync(join(h.root, 'staging')).length > 0)
  return { backend, launching, release }
}

/** Launches two machines with an hour between them, so that what is old is removed. */
async function sweepTwice(): Promise<void> {
  let monotonicMs = 0
  const backend = await h.reopen({}, { monotonic: () => monotonicMs })
  for (; monotonicMs <= HOUR_MS; monotonicMs += HOUR_MS) {
    const handle = await launch(await h.order(), backend)
    await backend.terminate(handle, patiently())
  }
}

const directoryOf = ({ id }: MachineHandle): string => join(h.root, 'machines', id)
const read = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))

describe('the processes of a machine', () => {
  it('are a session of their own, which no signal to ours reaches', async () => {
    const handle = await running()
    const { pid } = read(join(directoryOf(handle), 'process.json')) as { pid: number }
    const { stdout } = spawnSync('ps', ['-o', 'pgid=', '-p', String(pid)], { encoding: 'utf8' })
    expect(Number(stdout)).toBe(pid)
  })

  it('are ended to the last one, whichever way it left: a session of its own, a wiped environment, a dead parent', async () => {
    const folder = join(h.directory, 'pids')
    await mkdir(folder)
    const note = (name: string): string => `echo $$ > ${folder}/${name}`
    const python = `import os,time; os.setsid(); print(os.getpid(), file=open("${folder}/session","w"), flush=True); time.sleep(600)`
    const workload = [
      `python3 -c '${python}' &`,
      `env -i "$(command -v python3)" -c '${python.replace('session', 'wiped')}' &`,
      `sh -c 'sh -c "${note('orphan').replace('$$', '\\$\\$')}; exec sleep 600" & exit 0'`,
      `sh -c 'trap "" TERM INT HUP; ${note('deaf')}; while :; do sleep 600; done' &`,
      'wait',
    ]
    const handle = await launch(await h.order({ run: workload.join('\n') }))
    const pids = (): number[] =>
      readdirSync(folder).flatMap(
        (name) => readFileSync(join(folder, name), 'utf8').match(/\d+/)?.map(Number) ?? [],
      )
    await until(() => pids().length === 4)
    expect(pids().every(isAlive)).toBe(true)
    await h.backend.terminate(handle, patiently())
    expect(pids().filter(isAlive)).toEqual([])
    expect(existsSync(directoryOf(handle))).toBe(false)
  })

  it('are never taken for those that were given their numbers later', async () => {
    const handle = await running()
    const record = join(directoryOf(handle), 'process.json')
    const bystander = spawn('sleep', ['600'])
    try {
      // The machine's first process has gone and its number is somebody else's; when it started tells them apart.
      await writeFile(record, JSON.stringify({ ...(read(record) as object), pid: bystander.pid }))
      expect(await h.backend.observe([handle], patiently())).toEqual([{ state: 'running' }])
      await h.backend.terminate(handle, patiently())
      expect(await h.runningOf(handle.attemptId)).toBe(0)
      expect(isAlive(bystander.pid!)).toBe(true)
    } finally {
      bystander.kill('SIGKILL')
    }
  })
})

describe('a machine that ended on its own', () => {
  it('is gone, frees its slots, is not found, and keeps its directory until it is terminated', async () => {
    const order = await h.order({ run: 'exit 0', resources: { cpus: { min: 4 } } })
    const handle = await launch(order)
    await until(async () => (await h.backend.observe([handle], patiently()))[0]!.state === 'gone')
    const [observation] = await h.backend.observe([handle], patiently())
    expect(observation).toMatchObject({ state: 'gone', cause: 'ended' })
    expect(await h.backend.find(order.attemptId, patiently())).toEqual({ kind: 'absent' })
    const [listed] = await h.backend.list('test', patiently())
    expect(listed!.description).toMatch(/^ended .*, its directory remains$/)
    await running({ resources: { cpus: { min: 4 } } })
    await h.backend.terminate(handle, patiently())
    expect(existsSync(directoryOf(handle))).toBe(false)
    expect(await (await h.reopen()).observe([handle], patiently())).toEqual([observation])
  })

  it('is not started again by its order', async () => {
    const order = await h.order({ run: 'exit 0' })
    const handle = await launch(order)
    await until(async () => (await h.backend.observe([handle], patiently()))[0]!.state === 'gone')
    expect(await launch(order)).toEqual(handle)
    expect(await launch(order, await h.reopen())).toEqual(handle)
    expect(await h.runningOf(order.attemptId)).toBe(0)
    expect(await h.startsOf(order.attemptId)).toBe(1)
  })
})

describe('a terminated machine', () => {
  it('leaves a tombstone for thirty days, and nothing else', async () => {
    const handle = await running()
    await h.backend.terminate(handle, patiently())
    const tombstone = join(h.root, 'ended', `${handle.id}.json`)
    expect(read(tombstone)).toMatchObject({ ended: { cause: 'ended' } })
    expect(readdirSync(join(h.root, 'machines'))).toEqual([])
    expect(readdirSync(join(h.root, 'staging'))).toEqual([])
    const aged = async (days: number): Promise<void> => {
      const time = (Date.now() - days * DAY_MS) / 1000
      await utimes(tombstone, time, time)
      await sweepTwice()
    }
    await aged(29)
    expect(existsSync(tombstone)).toBe(true)
    await aged(31)
    expect(existsSync(tombstone)).toBe(false)
  })

  it('goes also where an earlier call died after taking the directory away', async () => {
    const handle = await running()
    await h.backend.terminate(handle, patiently())
    const remains = join(h.root, 'staging', `${handle.id}.0`)
    await mkdir(join(remains, 'work'), { recursive: true })
    await h.backend.terminate(handle, patiently())
    expect(existsSync(remains)).toBe(false)
  })
})

describe('a launch in progress', () => {
  it('is waited for by a search, which then finds its machine', async () => {
    const order = await h.order()
    const { backend, launching, release } = await slowLaunch(order)
    const finding = backend.find(order.attemptId, patiently())
    release()
    expect(await finding).toEqual({ kind: 'found', handles: [await launching] })
  })
})

describe('a clock that is set ahead by a month', () => {
  const ahead = { clock: () => Date.now() + 31 * DAY_MS, monotonic: () => performance.now() }

  it('breaks off no launch in progress', async () => {
    const { launching, release } = await slowLaunch(await h.order())
    await launch(await h.order(), await h.reopen({}, ahead))
    release()
    expect(existsSync(directoryOf(await launching))).toBe(true)
  })

  it('lets no order that is over be launched again', async () => {
    const order = await h.order()
    await h.backend.terminate(await launch(order), patiently())
    const later = await h.reopen({}, ahead)
    await launch(await h.order(), later)
    const handle = await launch(order, later)
    expect(await later.observe([handle], patiently())).toMatchObject([{ state: 'gone' }])
    expect(existsSync(directoryOf(handle))).toBe(false)
  })
})

describe('a spot machine', () => {
  it('gets one notice, in a file that its runner reads, and stops for it', async () => {
    const handle = await running({ capacityType: 'spot' })
    await h.backend.interrupt!(handle, { noticeMs: 60_000 }, patiently())
    const [noticed] = await h.backend.observe([handle], patiently())
    await h.backend.interrupt!(handle, { noticeMs: 120_000 }, patiently())
    const notice = read(join(directoryOf(handle), 'notice.json')) as { terminateAtMs: number }
    expect(noticed).toEqual({ state: 'running', noticeAtMs: notice.terminateAtMs })
    await until(async () => (await h.runningOf(handle.attemptId)) === 0)
    const { jobId, attempt } = parseAttemptId(handle.attemptId)!
    const result = JSON.parse((await h.store.get(layout.result(jobId, attempt)))!.toString()) as RunnerResult
    expect(result).toMatchObject({ outcome: 'stopped', reason: 'interrupted' })
    const [observation] = await (await h.reopen()).observe([handle], patiently())
    expect(observation).toMatchObject({ cause: 'interrupted', noticeAtMs: notice.terminateAtMs })
  })

  it('was ended by us, not taken back, when we ended it during its notice', async () => {
    const handle = await running({ capacityType: 'spot' })
    await h.backend.interrupt!(handle, { noticeMs: 60_000 }, patiently())
    await h.backend.terminate(handle, patiently())
    const [observation] = await h.backend.observe([handle], patiently())
    expect(observation).toMatchObject({ state: 'gone', cause: 'ended' })
  })

  it('is the only kind that is taken back, and only where it is configured', async () => {
    const handle = await running({ capacityType: 'on-demand' })
    const taking = h.backend.interrupt!(handle, { noticeMs: null }, patiently())
    await expect(taking).rejects.toMatchObject({ failure: { class: 'invalid' } })
    expect(await h.backend.observe([handle], patiently())).toEqual([{ state: 'running' }])
    const plain = await h.reopen({ hasSpot: false })
    expect(plain.capabilities).toMatchObject({ capacityTypes: ['on-demand'] })
    const order = await h.order({ capacityType: 'spot' })
    const outcome = await plain.launch(order, patiently())
    expect(outcome).toMatchObject({ kind: 'refused', failure: { class: 'invalid' } })
  })
})

describe('slots', () => {
  it('are never given twice, however many launch at once', async () => {
    const orders = await Promise.all(Array.from({ length: 6 }, () => h.order()))
    const outcomes = await Promise.all(orders.map((order) => h.backend.launch(order, patiently())))
    const refused = outcomes.filter((outcome) => outcome.kind === 'refused')
    expect(outcomes.filter((outcome) => outcome.kind === 'launched')).toHaveLength(4)
    expect(refused).toHaveLength(2)
    for (const outcome of refused) {
      const message = 'this host is full: 0 of 4 slots free, the job takes 1'
      expect(outcome).toMatchObject({ failure: { class: 'capacity', message } })
    }
  })

  it('are free for another job while a machine whose program has ended still uploads', async () => {
    const handle = await running({ resources: { cpus: { min: 4 } } })
    const whole = { resources: { cpus: { min: 4 } } }
    expect(await h.backend.launch(await h.order(whole), patiently())).toMatchObject({ kind: 'refused' })
    await writeFile(join(directoryOf(handle), 'program-ended'), '')
    expect(await h.backend.launch(await h.order(whole), patiently())).toMatchObject({ kind: 'launched' })
  })

  it('show in offers, count all deployments, and come back', async () => {
    const handle = await running({ resources: { cpus: { min: 3 } }, deployment: 'others' })
    const request = { cpus: { min: 2 } }
    const [full] = await h.backend.offers(request, patiently())
    expect(full).toMatchObject({ availability: 'unavailable', note: '1 of 4 slots free, the job takes 2' })
    await h.backend.terminate(handle, patiently())
    const [free] = await h.backend.offers(request, patiently())
    expect(free).toMatchObject({ availability: 'available', shape: { cpus: 4, gpus: 0 } })
    const [small] = await h.backend.offers({ cpus: { min: 5 } }, patiently())
    expect(small!.shape.cpus).toBe(4)
    const [cut] = await h.backend.offers({ cpus: { min: 1, max: 2 }, memoryGiB: { max: 0.5 } }, patiently())
    expect(cut).toMatchObject({ availability: 'available', shape: { cpus: 2, memoryGiB: 0.5 } })
  })
})

describe('two deployments that share a root', () => {
  it('find, end and start only their own machines', async () => {
    const ours = await h.reopen({}, { deployment: 'ours' })
    const theirs = await h.reopen({}, { deployment: 'theirs' })
    const order = await h.order({ deployment: 'ours' })
    const handle = await launch(order, ours)
    await h.startsOf(order.attemptId)
    expect(await ours.find(order.attemptId, patiently())).toMatchObject({ kind: 'found' })
    expect(await theirs.find(order.attemptId, patiently())).toEqual({ kind: 'absent' })
    const refusal = {
      failure: { class: 'invalid', message: expect.stringContaining('belongs to deployment ours') },
    }
    await expect(theirs.terminate(handle, patiently())).rejects.toMatchObject(refusal)
    const taken = await theirs.launch({ ...order, deployment: 'theirs' }, patiently())
    expect(taken).toMatchObject({ kind: 'refused', ...refusal })
    expect(await ours.observe([handle], patiently())).toEqual([{ state: 'running' }])
    await ours.terminate(handle, patiently())
  })
})

describe('a machine whose launch was cut short', () => {
  it('is pending for a minute, then failed to start, and keeps its slots until it is ended', async () => {
    const order = await h.order({ resources: { cpus: { min: 4 } } })
    const handle = await launch(order)
    await h.backend.terminate(handle, patiently())
    const cutShort = { ...handle, id: `${order.jobId}-2`, attemptId: `${order.jobId}-2` }
    const { machine } = read(join(h.root, 'ended', `${handle.id}.json`)) as { machine: { owner: object } }
    const record = { ...machine, owner: { ...machine.owner, attemptId: cutShort.id } }
    await mkdir(directoryOf(cutShort))
    await writeFile(join(directoryOf(cutShort), 'machine.json'), JSON.stringify(record))
    expect(await h.backend.observe([cutShort], patiently())).toEqual([{ state: 'pending' }])
    const later = await h.reopen({}, { clock: () => Date.now() + MINUTE_MS })
    const [observation] = await later.observe([cutShort], patiently())
    expect(observation).toMatchObject({ state: 'gone', cause: 'failed-to-start' })
    // By a clock that is set meanwhile, it is neither older nor younger.
    let [aheadMs, monotonicMs] = [0, 0]
    const deps = { clock: () => Date.now() + aheadMs, monotonic: () => monotonicMs }
    const stepped = await h.reopen({}, deps)
    for (aheadMs of [0, 2 * HOUR_MS, -2 * HOUR_MS, 30 * DAY_MS])
      expect(await stepped.observe([cutShort], patiently())).toEqual([{ state: 'pending' }])
    monotonicMs = MINUTE_MS
    expect(await stepped.observe([cutShort], patiently())).toMatchObject([{ state: 'gone' }])
    const full = await later.launch(await h.order(), patiently())
    expect(full).toMatchObject({ kind: 'refused', failure: { class: 'capacity' } })
    await later.terminate(cutShort, patiently())
    expect(existsSync(directoryOf(cutShort))).toBe(false)
  })
})

describe('logs', () => {
  it('are what the runner itself printed, page by page', async () => {
    const program = Buffer.from(`for n in range(20000): print("line", n, "ü")\n`)
    const runnerPath = join(h.directory, 'chatty.py')
    await writeFile(runnerPath, program)
    const runnerSha256 = createHash('sha256').update(program).digest('hex')
    const deps = { fetchRunner: (_: string, to: string) => writeFile(to, program) }
    const chatty = await h.reopen({}, deps)
    const handle = await launch(await h.order({ runnerSha256 }), chatty)
    await until(async () => (await chatty.observe([handle], patiently()))[0]!.state === 'gone')
    let text = ''
    let cursor: string | undefined
    do {
      const page = await chatty.logs!(handle, cursor, patiently())
      text += page.text
      cursor = page.next
    } while (cursor !== undefined)
    expect(text).toBe(Array.from({ length: 20_000 }, (_, n) => `line ${n} ü\n`).join(''))
    await expect(chatty.logs!(handle, 'x', patiently())).rejects.toMatchObject({
      failure: { class: 'invalid' },
    })
  })
})

describe('when the folder of the machines is missing', () => {
  it('nothing is said of machines: they may well be alive', async () => {
    const handle = await running()
    const order = await h.order()
    const folder = join(h.root, 'machines')
    await rename(folder, `${folder}.elsewhere`)
    const calls: Promise<unknown>[] = [
      h.backend.observe([handle], patiently()),
      h.backend.find(handle.attemptId, patiently()),
      h.backend.list('test', patiently()),
      h.backend.terminate(handle, patiently()),
      h.backend.launch(order, patiently()),
    ]
    await Promise.all(
      calls.map((call) => expect(call).rejects.toMatchObject({ failure: { class: 'transient' } })),
    )
    await rename(`${folder}.elsewhere`, folder)
    expect(await h.backend.observe([handle], patiently())).toEqual([{ state: 'running' }])
  })
})

/** Zombies do not count. */
function isAlive(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return /^\s*[^Z\s]/.test(stdout)
}
