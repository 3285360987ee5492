import { describe, expect, it } from '@jest/globals'
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { scanProcesses } from '../../backends/local/processes'
import { createLinuxReader } from '../../backends/local/processes-linux'
import { until } from '../support/until'
import { COUNTER, STUBBORN, sumOf } from './programs'
import { machineProcesses, runs, useWorlds, type Machine, type World } from './world'
import { patient } from '../support/patience'
import { itInAll } from '../support/selection'

const createWorld = useWorlds()

/** Leaves a process behind that has a session of its own, no parent, no marks in its environment, and hears no signal. */
const DAEMON = `
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        script = "import os, time; open('daemon.pid', 'w').write(str(os.getpid())); time.sleep(600)"
        os.execve(sys.executable, [sys.executable, "-c", script], {})
    os._exit(0)
os.wait()
`

async function launchStubborn(
  world: World,
  run = 'python3 stubborn.py & python3 stubborn.py; true',
  ...args: string[]
): Promise<Machine> {
  const bundle = await world.bundle({ 'stubborn.py': STUBBORN, 'daemon.py': DAEMON })
  const machine = await world.launch({ bundle, run: `python3 daemon.py; ${run}` }, ...args)
  await machine.untilBeat(({ progress }) => progress !== null)
  return machine
}

async function daemonOf(machine: Machine): Promise<number> {
  const path = join(machine.root, 'work/daemon.pid')
  await until(() => existsSync(path) && readFileSync(path, 'utf8') !== '')
  return Number(readFileSync(path, 'utf8'))
}

function isAlive(pid: number): boolean {
  // A zombie is dead; only its parent has not noticed yet.
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout.trim() !== '' && !stdout.startsWith('Z')
}

async function untilNothingIsLeft(machine: Machine, daemon: number): Promise<void> {
  await until(() => machineProcesses(machine.id).length === 0 && !isAlive(daemon), 10_000)
}

function leashOf(machine: Machine): number {
  const found = machineProcesses(machine.id).find(({ command }) => command.includes(' leash '))
  return found!.pid
}

const FROZEN = [
  ['the guard is', ['guard']],
  ['guard and timekeeper are', ['guard', 'timekeeper']],
  ['the timekeeper is', ['timekeeper']],
] as const
/** Longer than a runner may be silent. */
const FROZEN_MS = 7_000

/** A job that runs until its file `go` exists, and processes of its machine, which are stopped. */
async function frozen(
  world: World,
  parts: readonly ('guard' | 'timekeeper')[],
  ...args: string[]
): Promise<{ machine: Machine; pids: number[]; go: () => void }> {
  const run = 'echo step 1; until [ -e go ]; do sleep 0.05; done'
  const machine = await world.launch({ run }, ...args)
  await machine.untilBeat(({ progress }) => progress !== null)
  const pids = parts.map((part) => (part === 'guard' ? machine.guard.pid! : machine.timekeeper()))
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  return { machine, pids, go: () => writeFileSync(join(machine.root, 'work/go'), '') }
}

describe('a healthy job', () => {
  it('runs on while guard, timekeeper or both are frozen, and when they continue', async () => {
    const outcomes = FROZEN.map(async ([, parts], at) => {
      const world = createWorld(undefined, `frozen-${at}-${process.pid}`)
      const { machine, pids, go } = await frozen(world, parts)
      await sleep(FROZEN_MS)
      for (const pid of pids) process.kill(pid, 'SIGCONT')
      const { seq } = (await machine.beat())!
      await machine.untilBeat((beat) => beat.seq > seq + 2)
      go()
      return (await machine.end()).outcome
    })
    expect(await Promise.all(outcomes)).toEqual(FROZEN.map(() => 'succeeded'))
  }, 60_000)
})

describe('no process of the machine is left', () => {
  itInAll('when the command ends and has left processes behind', async () => {
    const world = createWorld()
    const bundle = await world.bundle({ 'daemon.py': DAEMON })
    const machine = await world.launch({
      bundle,
      run: 'python3 daemon.py; sleep 600 & until [ -s daemon.pid ]; do sleep 0.05; done; sleep 1.2; echo done',
    })
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
    await untilNothingIsLeft(machine, await daemonOf(machine))
  })

  itInAll('when the attempt is drained', async () => {
    const world = createWorld()
    const machine = await launchStubborn(world)
    const daemon = await daemonOf(machine)
    await world.drain(1, { windowMs: 500 })
    expect(await machine.end()).toMatchObject({ outcome: 'stopped' })
    await untilNothingIsLeft(machine, daemon)
  })

  it('when the runner is killed', async () => {
    const machine = await launchStubborn(createWorld())
    const daemon = await daemonOf(machine)
    process.kill(machine.runner(), 'SIGKILL')
    await machine.exited
    await untilNothingIsLeft(machine, daemon)
    expect(await machine.result()).toBeUndefined()
  })

  itInAll('when the runner is killed together with the process between it and the command', async () => {
    const machine = await launchStubborn(createWorld())
    const daemon = await daemonOf(machine)
    const leash = leashOf(machine)
    process.kill(machine.runner(), 'SIGKILL')
    process.kill(leash, 'SIGKILL')
    await machine.exited
    await untilNothingIsLeft(machine, daemon)
  })

  it('when the timekeeper is killed', async () => {
    const machine = await launchStubborn(createWorld())
    const daemon = await daemonOf(machine)
    process.kill(machine.timekeeper(), 'SIGKILL')
    await machine.exited
    await untilNothingIsLeft(machine, daemon)
    expect(await machine.result()).toBeUndefined()
  })

  it('when the timekeeper is killed while the runner does not answer', async () => {
    const machine = await launchStubborn(createWorld())
    const daemon = await daemonOf(machine)
    process.kill(machine.runner(), 'SIGSTOP')
    process.kill(machine.timekeeper(), 'SIGKILL')
    await machine.exited
    await untilNothingIsLeft(machine, daemon)
  })

  it.each(['runner', 'timekeeper'] as const)('when %s and guard are killed together', async (other) => {
    const world = createWorld()
    const mark = join(world.folder, 'off')
    const machine = await launchStubborn(world, undefined, '--power-off', `touch ${mark}`)
    const daemon = await daemonOf(machine)
    const pid = machine[other]()
    process.kill(machine.guard.pid!, 'SIGKILL')
    process.kill(pid, 'SIGKILL')
    await untilNothingIsLeft(machine, daemon)
    await until(() => existsSync(mark))
  })

  it('when the guard was killed and the runner ends later', async () => {
    const world = createWorld()
    const mark = join(world.folder, 'off')
    const bundle = await world.bundle({ 'stubborn.py': STUBBORN, 'daemon.py': DAEMON })
    const machine = await world.launch(
      {
        bundle,
        run: 'python3 daemon.py; python3 stubborn.py & until [ -e go ]; do echo step 1; sleep 0.05; done; sleep 1.2',
      },
      '--power-off',
      `touch ${mark}`,
    )
    await machine.untilBeat(({ progress }) => progress !== null)
    const daemon = await daemonOf(machine)
    process.kill(machine.guard.pid!, 'SIGKILL')
    await machine.exited
    const { seq } = (await machine.beat())!
    await machine.untilBeat((beat) => beat.seq > seq + 3)
    writeFileSync(join(machine.root, 'work/go'), '')
    await until(() => existsSync(mark))
    expect(await machine.result()).toMatchObject({ outcome: 'succeeded' })
    await untilNothingIsLeft(machine, daemon)
  })

  it.each(FROZEN.slice(0, 2))('when %s frozen and the command ends', async (_, parts) => {
    const world = createWorld()
    const mark = join(world.folder, 'off')
    const { machine, go } = await frozen(world, parts, '--power-off', `touch ${mark}`)
    go()
    await until(() => existsSync(mark))
    expect(await machine.result()).toMatchObject({ outcome: 'succeeded' })
    await until(() => machineProcesses(machine.id).length === 0)
  })

  it('when the process between runner and command is killed', async () => {
    const machine = await launchStubborn(createWorld())
    const daemon = await daemonOf(machine)
    process.kill(leashOf(machine), 'SIGKILL')
    expect(await machine.end()).toMatchObject({ outcome: 'failed', reason: 'workload', signal: 'SIGKILL' })
    await untilNothingIsLeft(machine, daemon)
  })

  itInAll('when the command is killed', async () => {
    const machine = await launchStubborn(createWorld(), 'exec python3 stubborn.py')
    const daemon = await daemonOf(machine)
    const command = machineProcesses(machine.id).find((each) => runs(each, 'stubborn.py'))
    process.kill(command!.pid, 'SIGKILL')
    expect(await machine.end()).toMatchObject({
      outcome: 'failed',
      reason: 'workload',
      signal: 'SIGKILL',
      message: expect.stringMatching(/^The command was killed by SIGKILL/),
    })
    await untilNothingIsLeft(machine, daemon)
  })
})

/** Whether processes of this user can be put into a control group of their own. */
const HAS_GROUPS =
  spawnSync(
    'python3',
    [
      '-c',
      `import os, sys, tempfile; sys.path.insert(0, "runner")
from crucible_runner.process import cgroup
with tempfile.TemporaryDirectory() as folder:
    group = cgroup.make("probe-%d" % os.getpid(), folder + "/record")
group and cgroup.remove(group)
sys.exit(0 if group else 1)`,
    ],
    { cwd: join(__dirname, '..', '..') },
  ).status === 0
const withGroups = HAS_GROUPS ? it : it.skip

/** SIGKILL to guard, timekeeper, runner and leash, so that none of them can end anything. Returns the daemon that is left. */
async function killAllWhoEnd(machine: Machine): Promise<number> {
  const daemon = await daemonOf(machine)
  const four = [machine.guard.pid!, machine.timekeeper(), machine.runner(), leashOf(machine)]
  for (const pid of four) process.kill(pid, 'SIGSTOP')
  for (const pid of four) process.kill(pid, 'SIGKILL')
  await machine.exited
  await until(() => machineProcesses(machine.id).length === 0)
  return daemon
}

describe(`daemons that outlive guard, timekeeper, runner and leash${HAS_GROUPS ? '' : ' (skipped: no control group can be made)'}`, () => {
  withGroups('are ended by the next runner, which is in the same directory', async () => {
    const world = createWorld()
    const bundle = await world.bundle({ 'daemon.py': DAEMON })
    const machine = await world.launch({ bundle, run: 'python3 daemon.py; echo step 1; exec sleep 600' })
    const daemon = await killAllWhoEnd(machine)
    expect(isAlive(daemon)).toBe(true)
    const group = machine.read('cgroup')
    await world.drain(1, { windowMs: 0 })
    const second = world.start({ root: machine.root })
    await second.exited
    expect(isAlive(daemon)).toBe(false)
    expect(existsSync(group)).toBe(false)
  })

  withGroups('are seen by the backend, though they have no mark', async () => {
    const world = createWorld()
    const bundle = await world.bundle({ 'daemon.py': DAEMON })
    const machine = await world.launch({ bundle, run: 'python3 daemon.py; echo step 1; exec sleep 600' })
    const daemon = await killAllWhoEnd(machine)
    const found = await scanProcesses(createLinuxReader()).ofMachine({ name: machine.id })
    expect(found.map(({ pid }) => pid)).toEqual([daemon])
    process.kill(daemon, 'SIGKILL')
    await until(() => !isAlive(daemon))
    rmdirSync(machine.read('cgroup'))
  })
})

describe('two runners in one directory', () => {
  it('exclude each other: the second ends at once and changes nothing', async () => {
    const world = createWorld()
    const machine = await launchStubborn(world)
    const before = machineProcesses(machine.id).map(({ pid }) => pid)
    const second = world.start({ root: machine.root })
    expect(await second.exited).toBe(0)
    await second.says('another runner is already running')
    expect(machineProcesses(machine.id).map(({ pid }) => pid)).toEqual(before)
    await world.drain(1, { windowMs: 0 })
    await machine.end()
  })

  it('one after the other: the second continues where the first was killed', async () => {
    const world = createWorld()
    const bundle = await world.bundle({ 'counter.py': COUNTER })
    const first = await world.launch({ bundle, run: 'python3 counter.py 90 0.05 5', leaseMs: 60_000 })
    await first.untilBeat(({ checkpoint }) => checkpoint !== null)
    await until(async () => (await first.lines()).length > 10)
    // Nothing waits on the machine's disk: only the store knows how far the numbers are.
    await until(() => readdirSync(join(first.root, 'tmp/logs')).length === 0)
    const linesBefore = await first.lines()
    const { seq } = (await first.beat())!
    process.kill(first.runner(), 'SIGKILL')
    await first.exited
    const second = world.start({ root: first.root })
    const result = await second.end()
    expect(result).toMatchObject({ outcome: 'succeeded', restoredFrom: { attempt: 1 } })
    expect(await world.artifact('sum.txt')).toBe(sumOf(90))
    expect((await second.beat())!.seq).toBeGreaterThan(seq)
    const lines = await second.lines()
    expect(lines.map(({ n }) => n)).toEqual(lines.map((_, at) => at + 1))
    expect(lines.slice(0, linesBefore.length)).toEqual(linesBefore)
    expect(lines.filter(({ m }) => m.startsWith('beginning after step'))).toHaveLength(2)
    expect(lines.filter(({ s }) => s === 'gap')).toEqual([])
  })

  itInAll('one after the other keep the lease as it was renewed', async () => {
    const world = createWorld()
    const bundle = await world.bundle({ 'counter.py': COUNTER })
    const leaseMs = 5_000
    const first = await world.launch({ bundle, run: 'python3 counter.py 120 0.05 5', leaseMs })
    const { seq } = await first.untilBeat(({ checkpoint }) => checkpoint !== null)
    await world.lease(1, { seq: 1, answersBeat: seq, ttlMs: 60_000 })
    await first.untilBeat(({ leaseSeq }) => leaseSeq === 1)
    await until(() => {
      const { startedMs, leaseUntilMs } = JSON.parse(first.read('runner.json')) as Record<string, number>
      return leaseUntilMs! > startedMs! + leaseMs
    })
    process.kill(first.runner(), 'SIGKILL')
    await first.exited
    const second = world.start({ root: first.root })
    expect(await second.end()).toMatchObject({ outcome: 'succeeded' })
    expect((await second.beat())!.uptimeMs).toBeGreaterThan(leaseMs)
  })

  it('one after the other have one lease and one time to run', async () => {
    const world = createWorld()
    const bundle = await world.bundle({ 'stubborn.py': STUBBORN })
    const first = await world.launch({ bundle, run: 'python3 stubborn.py', leaseMs: 4_000, drainMs: 500 })
    await first.untilBeat(({ uptimeMs, progress }) => uptimeMs > 1_500 && progress !== null)
    process.kill(first.runner(), 'SIGKILL')
    await first.exited
    // Beats are numbered on, so that this answer to one of the first runner's is none to one of the second's.
    await world.lease(1, { seq: 1, answersBeat: 5, ttlMs: 60_000 })
    const second = world.start({ root: first.root })
    const result = await second.end()
    expect(result).toMatchObject({ outcome: 'stopped', reason: 'lease' })
    const ran = result.phases
      .filter(({ name }) => name === 'running')
      .reduce((sum, phase) => sum + phase.durationMs, 0)
    expect(ran).toBeLessThan(patient(3_000))
  })
})
