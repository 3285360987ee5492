import { describe, expect, it } from '@jest/globals'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CLOCK_SLACK_MS, HOUR_MS, SECOND_MS } from '../../core/time/time'
import { artifactVersions } from '../../storage/artifacts'
import { until } from '../support/until'
import { COUNTER, LINGERING, SLOW_TIMEOUT, STUBBORN, sumOf, TALKATIVE } from './programs'
import { JOB, machineProcesses, useWorlds, type Machine, type World } from './world'
import { patient } from '../support/patience'
import { chosen, itInAll } from '../support/selection'

const createWorld = useWorlds()
const STEPS = 60
// Too long for the window: the runner asks the command to stop at once, instead of waiting for the end of its save.
const NEVER_QUIET = { directory: null, everyMs: 0, quietMs: 600_000, keep: 3 }

async function launchCounter(world: World, wanted: object, ...args: string[]): Promise<Machine> {
  const bundle = await world.bundle({ 'counter.py': COUNTER })
  return world.launch({ bundle, run: `python3 counter.py ${STEPS} 0.05 1000`, ...wanted }, ...args)
}

async function untilStep(machine: Machine, step: number): Promise<void> {
  await machine.untilBeat(({ progress }) => (progress?.step ?? 0) >= step)
}

describe('the end of the reservation that the machine is in', () => {
  it('finds the work saved and the machine left, wherever the lease has moved it to', async () => {
    const world = createWorld()
    const [drainMs, powerOffMs] = [patient(10_000), patient(2_000)]
    const machine = await launchCounter(world, {
      drainMs,
      powerOffMs,
      run: 'python3 counter.py 60000 0.05 1000',
      usableUntilMs: Date.now() + HOUR_MS,
    })
    await untilStep(machine, 3)
    const usableUntilMs = Date.now() + CLOCK_SLACK_MS + powerOffMs + drainMs + SECOND_MS
    await world.lease(1, { seq: 1, answersBeat: 1, ttlMs: HOUR_MS, usableUntilMs })
    const stopped = await machine.end()
    expect(stopped).toMatchObject({ outcome: 'stopped', reason: 'expired', exitCode: 143 })
    expect(stopped.message).toMatch(/^The reservation or run limit of this machine ends/)
    expect(stopped.checkpoint!.step).toBe(stopped.progress!.step)
    expect(stopped.finishedAtMs).toBeLessThan(usableUntilMs - CLOCK_SLACK_MS)
  })
})

describe("the provider's limit on how long a machine runs", () => {
  it('finds the work saved and the machine left, without any word from the control plane', async () => {
    const world = createWorld()
    const [drainMs, powerOffMs] = [patient(10_000), patient(2_000)]
    const runMsMax = CLOCK_SLACK_MS + powerOffMs + drainMs + patient(2_000)
    const orderedAtMs = Date.now()
    const machine = await launchCounter(world, {
      drainMs,
      powerOffMs,
      run: 'python3 counter.py 60000 0.05 1000',
      queueMs: HOUR_MS,
      runMsMax,
    })
    const stopped = await machine.end()
    expect(stopped).toMatchObject({ outcome: 'stopped', reason: 'expired', exitCode: 143 })
    expect(stopped.checkpoint!.step).toBe(stopped.progress!.step)
    expect(stopped.finishedAtMs).toBeLessThan(orderedAtMs + runMsMax - CLOCK_SLACK_MS)
  })
})

describe('drain.json', () => {
  it('makes the command save, and the next attempt reaches the same result', async () => {
    const world = createWorld()
    const first = await launchCounter(world, {})
    await untilStep(first, 3)
    await world.drain(1, { reason: 'migrated' })
    const stopped = await first.end()
    expect(stopped).toMatchObject({ outcome: 'stopped', reason: 'migrated', exitCode: 143 })
    expect(stopped.phases.map(({ name }) => name)).toContain('draining')
    expect(first.read('control/stop.json')).toContain('"migrated"')
    const [checkpoint] = await world.checkpoints()
    expect(stopped.checkpoint).toEqual(checkpoint)
    expect(checkpoint!.step).toBe(stopped.progress!.step)

    const second = await launchCounter(world, { attempt: 2 })
    const done = await second.end()
    expect(done).toMatchObject({ outcome: 'succeeded', restoredFrom: checkpoint })
    expect((await second.output())[0]).toBe(`beginning after step ${checkpoint!.step}`)
    expect(await world.artifact('sum.txt')).toBe(sumOf(STEPS))
  })

  itInAll(
    'has the outputs of the attempt kept as well, each attempt its own, after the checkpoint',
    async () => {
      const world = createWorld()
      const write = 'echo "of $CRUCIBLE_ATTEMPT" > "$CRUCIBLE_OUTPUT_DIR/metrics.txt"'
      const run = `${write}; touch "$CRUCIBLE_OUTPUT_DIR/by-$CRUCIBLE_ATTEMPT"; exec python3 counter.py ${STEPS} 0.05 1000`
      const first = await launchCounter(world, { run })
      await untilStep(first, 3)
      await world.drain(1, { reason: 'migrated' })
      const stopped = await first.end()
      expect(stopped.checkpoint!.step).toBe(stopped.progress!.step)
      expect(stopped.artifacts.map(({ path }) => path)).toEqual(['by-1', 'metrics.txt'])
      expect(await world.artifact('metrics.txt')).toBe('of 1\n')

      const second = await launchCounter(world, { attempt: 2, run })
      await second.end()
      expect(await world.artifact('metrics.txt')).toBe('of 2\n')
      expect(await world.artifact('by-1')).toBe('')
      const versions = await artifactVersions(world.store, JOB)
      expect(versions.map(({ attempt, path }) => `${attempt} ${path}`)).toEqual([
        '2 by-2',
        '2 metrics.txt',
        '2 sum.txt',
        '1 by-1',
        '1 metrics.txt',
      ])
    },
  )

  it('kills a command that does not stop in time, with all that it started', async () => {
    const world = createWorld()
    const bundle = await world.bundle({ 'stubborn.py': STUBBORN })
    const machine = await world.launch({ bundle, run: 'python3 stubborn.py & python3 stubborn.py' })
    await untilStep(machine, 1)
    await world.drain(1, { reason: 'cancelled', windowMs: 1_000 })
    const result = await machine.end()
    expect(result).toMatchObject({ outcome: 'stopped', reason: 'cancelled', signal: 'SIGKILL' })
    const draining = result.phases.find(({ name }) => name === 'draining')!
    expect(draining.durationMs).toBeGreaterThan(700)
    expect(machineProcesses(machine.id)).toEqual([])
  })

  it('is made shorter by a later one, for a command that does not stop', async () => {
    const world = createWorld()
    const bundle = await world.bundle({ 'stubborn.py': STUBBORN })
    const machine = await world.launch({ bundle, run: 'python3 stubborn.py', drainMs: 60_000 })
    await untilStep(machine, 1)
    await world.drain(1, { reason: 'cancelled', windowMs: 60_000 })
    await machine.untilBeat(({ phase }) => phase === 'draining')
    const askedAtMs = Date.now()
    await world.drain(1, { seq: 2, reason: 'cancelled', windowMs: 2_000 })
    const result = await machine.end()
    expect(result).toMatchObject({ outcome: 'stopped', reason: 'cancelled', signal: 'SIGKILL' })
    const tookMs = result.finishedAtMs - askedAtMs
    expect(tookMs).toBeGreaterThanOrEqual(2_000)
    expect(tookMs).toBeLessThan(patient(10_000))
  })

  it('with no time left kills at once and uploads no checkpoint', async () => {
    const world = createWorld()
    const machine = await launchCounter(world, {
      checkpoint: { directory: null, everyMs: 3_600_000, quietMs: 300, keep: 3 },
    })
    await untilStep(machine, 3)
    await world.drain(1, { reason: 'superseded', windowMs: 0 })
    expect(await machine.end()).toMatchObject({ outcome: 'stopped', reason: 'superseded', checkpoint: null })
    expect(await world.checkpoints()).toEqual([])
    expect((await machine.output()).length).toBeGreaterThan(2)
  })

  it('that is there before the start keeps the command from ever running', async () => {
    const world = createWorld()
    await world.drain(1, { reason: 'superseded' })
    // Looked for before anything is started, not only at the pace of the beats.
    const machine = await world.launch({ setup: 'echo setup', run: 'echo run', beatMs: 30_000 })
    expect(await machine.end()).toMatchObject({ outcome: 'stopped', reason: 'superseded' })
    expect(await machine.output()).toEqual([])
  })

  itInAll('stops a setup, and the command is not run', async () => {
    const world = createWorld()
    const machine = await world.launch({ setup: 'echo step 1; sleep 60', run: 'echo run' })
    await untilStep(machine, 1)
    await world.drain(1, { reason: 'cancelled' })
    expect(await machine.end()).toMatchObject({ outcome: 'stopped', reason: 'cancelled' })
    expect(await machine.output()).toEqual(['step 1'])
  })
})

describe('a command that is asked to stop', () => {
  it('has stopped when it ends with code 0 before its last step', async () => {
    const world = createWorld()
    const machine = await world.launch({
      run: `trap 'echo step 8/9; exit 0' TERM; echo step 1/9; while :; do sleep 0.05; done`,
    })
    await untilStep(machine, 1)
    await world.drain(1, {})
    expect(await machine.end()).toMatchObject({ outcome: 'stopped', reason: 'migrated', exitCode: 0 })
  })

  itInAll('may save after the shell that started it has died of the signal', async () => {
    const world = createWorld()
    const machine = await launchCounter(world, {
      run: `python3 counter.py ${STEPS} 0.4 1000; echo never reached`,
    })
    await untilStep(machine, 2)
    await world.drain(1, {})
    const result = await machine.end()
    expect(result).toMatchObject({ outcome: 'stopped', exitCode: 143 })
    expect(result.checkpoint?.step).toBe(result.progress!.step)
  })

  const ways: [string, string][] = [
    ['by timeout, in a group of its own', 'true; timeout 600 python3 talkative.py; echo never reached'],
    ['by timeout, in a session of its own', 'timeout 600 setsid python3 talkative.py'],
    [
      'by a timeout that is slow to tell it a second time',
      "chmod +x timeout; bash -c 'set -m; ./timeout & wait'",
    ],
    ['by a shell with job control', "bash -c 'set -m; python3 talkative.py & wait'"],
    ['into a pipe', 'python3 talkative.py 2>&1 | tee -a log'],
    ['into two pipes, in the background', 'python3 talkative.py | sed s/a/a/ | tee log & wait'],
    [
      'into a pipe that something else holds open',
      '(setsid sleep 600 & exec python3 talkative.py) | tee log',
    ],
  ]
  // Elsewhere no session can be seen, and no pipe.
  const onLinux = process.platform === 'linux' ? it : it.skip
  onLinux.each(chosen(ways, [ways[1]!, ways[5]!]))('may save when it was started %s', async (_, run) => {
    const world = createWorld()
    const programs = { 'talkative.py': TALKATIVE, 'lingering.py': LINGERING, timeout: SLOW_TIMEOUT }
    const bundle = await world.bundle(programs)
    const machine = await world.launch({ bundle, run })
    await until(() => existsSync(join(machine.root, 'work/ready')))
    await world.drain(1, {})
    const result = await machine.end()
    expect(result).toMatchObject({ outcome: 'stopped', exitCode: 143, checkpoint: { step: 7 } })
    // Nor is the whole window waited for.
    expect(result.phases.find(({ name }) => name === 'draining')!.durationMs).toBeLessThan(patient(8_000))
    expect(machineProcesses(machine.id)).toEqual([])
  })

  it('that is killed by the signal in the midst of saving leaves no checkpoint', async () => {
    const world = createWorld()
    const machine = await world.launch({
      checkpoint: NEVER_QUIET,
      run: 'while :; do echo x >> "$CRUCIBLE_CHECKPOINT_DIR/step-7.txt"; echo step 1; sleep 0.05; done',
    })
    await untilStep(machine, 1)
    await world.drain(1, {})
    expect(await machine.end()).toMatchObject({ outcome: 'stopped', signal: 'SIGTERM', checkpoint: null })
    expect(await world.checkpoints()).toEqual([])
  })

  onLinux(
    'that is killed while its child ends on its own, before the signal, leaves no checkpoint',
    async () => {
      const world = createWorld()
      const saving =
        'while :; do echo x >> "$CRUCIBLE_CHECKPOINT_DIR/step-7.txt"; echo step 1; sleep 0.05; done'
      // The runner waits for the shell that stands still, while the other dies and its sleep runs out.
      const machine = await world.launch({
        checkpoint: NEVER_QUIET,
        run: `sh -c 'sleep 600 & kill -STOP $$; wait' & ${saving}`,
      })
      await untilStep(machine, 1)
      await world.drain(1, {})
      const running = (...starts: string[]) =>
        machineProcesses(machine.id).filter(({ command }) =>
          starts.some((start) => command.startsWith(start)),
        )
      await until(() => running('sh -c sh', 'sleep 0.05').length === 0)
      for (const { pid } of running('sh -c sleep')) process.kill(pid, 'SIGCONT')
      expect(await machine.end()).toMatchObject({ outcome: 'stopped', signal: 'SIGTERM', checkpoint: null })
      expect(await world.checkpoints()).toEqual([])
    },
  )

  it.each([
    ['at once', "exec python3 -c \"import time; open('ready', 'w'); time.sleep(600)\""],
    ['with code 0', "trap 'exit 0' TERM; touch ready; while :; do sleep 0.05; done"],
    ['with code 143', "trap 'exit 143' TERM; touch ready; while :; do sleep 0.05; done"],
  ])('by a system that goes down, and tells all processes, is interrupted: %s', async (_, run) => {
    for (const order of ['oldest first', 'youngest first']) {
      const machine = await createWorld().launch({ run })
      await until(() => existsSync(join(machine.root, 'work/ready')))
      const pids = machineProcesses(machine.id).map(({ pid }) => pid)
      pids.sort((a, b) => (order === 'oldest first' ? a - b : b - a))
      // Those that have ended by then get no signal.
      spawnSync('kill', ['-TERM', ...pids.map(String)])
      expect(await machine.end()).toMatchObject({ outcome: 'stopped', reason: 'interrupted' })
    }
  })

  it('by a signal to the machine is interrupted', async () => {
    for (const target of ['guard', 'runner'] as const) {
      const world = createWorld()
      const machine = await launchCounter(world, {})
      await untilStep(machine, 2)
      process.kill(target === 'guard' ? machine.guard.pid! : machine.runner(), 'SIGTERM')
      const result = await machine.end()
      expect(result).toMatchObject({ outcome: 'stopped', reason: 'interrupted', exitCode: 143 })
      expect(result.checkpoint).not.toBeNull()
    }
  })
})

describe('an order to drain on the machine itself', () => {
  it('gives a signal its reason and its window', async () => {
    const world = createWorld()
    const machine = await launchCounter(world, {})
    await untilStep(machine, 2)
    const drain = { reason: 'cancelled', windowMs: 8_000, requestedAtMs: Date.now() }
    writeFileSync(join(machine.root, 'drain.json'), JSON.stringify(drain))
    process.kill(machine.guard.pid!, 'SIGTERM')
    const result = await machine.end()
    expect(result).toMatchObject({ outcome: 'stopped', reason: 'cancelled', exitCode: 143 })
    expect(result.checkpoint!.step).toBe(result.progress!.step)
  })

  itInAll('that cannot be read leaves the signal what it is', async () => {
    const world = createWorld()
    const machine = await launchCounter(world, {})
    await untilStep(machine, 2)
    writeFileSync(join(machine.root, 'drain.json'), '{"reason": "for fun"}')
    process.kill(machine.guard.pid!, 'SIGTERM')
    expect(await machine.end()).toMatchObject({ outcome: 'stopped', reason: 'interrupted' })
  })
})

describe("the provider's notice", () => {
  function give(path: string, inMs: number): number {
    const terminateAtMs = Date.now() + inMs
    writeFileSync(path, JSON.stringify({ terminateAtMs }))
    return terminateAtMs
  }

  it('that the order names makes the command save in what time is left', async () => {
    const world = createWorld()
    const path = join(world.folder, 'notice.json')
    const machine = await launchCounter(world, { notice: { kind: 'file', path } })
    await untilStep(machine, 2)
    const terminateAtMs = give(path, patient(6_000))
    const result = await machine.end()
    expect(result).toMatchObject({ outcome: 'stopped', reason: 'interrupted', exitCode: 143 })
    expect(result.checkpoint).not.toBeNull()
    expect(result.finishedAtMs).toBeLessThan(terminateAtMs)
    const { windowMs } = JSON.parse(machine.read('control/stop.json')) as { windowMs: number }
    expect(windowMs).toBeLessThan(patient(6_000))
  })

  it('may be named on the command line, and its time is then kept by the guard', async () => {
    const world = createWorld()
    const path = join(world.folder, 'notice.json')
    const bundle = await world.bundle({ 'stubborn.py': STUBBORN })
    const machine = await world.launch(
      { bundle, run: 'python3 stubborn.py', drainMs: 60_000 },
      '--notice-file',
      path,
      '--notice-kill',
    )
    await untilStep(machine, 1)
    const runner = machine.runner()
    // So late that the runner's own clock would end it well after this.
    process.kill(runner, 'SIGSTOP')
    const terminateAtMs = give(path, 700)
    await machine.exited
    expect(Date.now()).toBeGreaterThanOrEqual(terminateAtMs)
    expect(machineProcesses(machine.id)).toEqual([])
    expect(await machine.result()).toBeUndefined()
  })

  itInAll('that cannot be read is said once and asked for again', async () => {
    const world = createWorld()
    const path = join(world.folder, 'notice.json')
    writeFileSync(path, '{"terminateAtMs": ')
    const machine = await launchCounter(world, { notice: { kind: 'file', path } })
    await untilStep(machine, 25)
    give(path, 20_000)
    expect(await machine.end()).toMatchObject({ reason: 'interrupted' })
    expect((await machine.remarks()).match(/cannot be read/g)).toHaveLength(1)
    expect(readFileSync(path, 'utf8')).toContain('terminateAtMs')
  })
})
