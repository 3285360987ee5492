import { describe, expect, it } from '@jest/globals'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Machine } from '../../src/machines/machine'
import { until } from '../support/until'
import { HAS_NAMESPACES, TRIED_KINDS, sh, uniqueSleep, useMachines } from './machines'

const createWorld = useMachines()
const ROOT = join(__dirname, '../..')

/** Ways for a process to escape the process that started it. */
const ESCAPES: [name: string, script: (command: string) => string][] = [
  ['in the background', (command) => `${command} &`],
  ['in a session of its own', (command) => `setsid ${command} >/dev/null 2>&1 &`],
  ['forked twice', (command) => `(setsid sh -c '${command} & ${'exit'}' &)`],
  ['deaf', (command) => `(trap '' HUP TERM INT; nohup ${command} >/dev/null 2>&1 &)`],
  ['a unit', (command) => `systemd-run ${command}`],
  ...(process.platform === 'linux'
    ? ([
        ['forked twice without its environment', (command) => `(env -i setsid sh -c '${command} &' &)`],
        [
          'a daemon without environment',
          (command) =>
            `python3 -c 'import os; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); os.execve("/bin/sh", ["sh", "-c", "exec ${command}"], {"PATH": "/usr/bin:/bin"})'`,
        ],
        [
          'a unit that wipes its environment',
          (command) => `systemd-run sh -c '(env -i setsid ${command} &) ; sleep 60'`,
        ],
      ] as typeof ESCAPES)
    : []),
]

describe.each(TRIED_KINDS)('the death of a machine of %s', (enclosure) => {
  it.each(ESCAPES)('ends a process %s', async (_name, script) => {
    const machine = createWorld().create({ enclosure })
    await machine.boot()
    const sleep = uniqueSleep()
    expect((await sh(machine, script(sleep.command))).exitCode).toBe(0)
    await until(() => sleep.pids().length > 0)
    await machine.kill()
    expect(sleep.pids()).toEqual([])
    await machine.kill()
  })

  it('ends user data, and a machine that still boots', async () => {
    const world = createWorld()
    const sleep = uniqueSleep()
    const machine = world.create({ enclosure, userData: `#!/bin/sh\n${sleep.command}\n` })
    await machine.boot()
    await until(() => sleep.pids().length === 1)
    await machine.kill()
    const booting = world.create({ enclosure, bootMs: 60_000, userData: `#!/bin/sh\n${sleep.command}\n` })
    const boot = booting.boot()
    boot.catch(() => undefined)
    await booting.kill()
    await expect(boot).rejects.toThrow('is off')
    expect(sleep.pids()).toEqual([])
  })

  it('takes the metadata service with it', async () => {
    const machine = createWorld().create({ enclosure })
    await machine.boot()
    const url = `${machine.metadataEndpoint}/latest/meta-data/`
    expect((await fetch(url)).status).toBe(401)
    await machine.kill()
    await expect(fetch(url)).rejects.toThrow()
  })

  it('leaves nothing of twenty machines that are killed at once', async () => {
    const world = createWorld()
    const sleep = uniqueSleep()
    const userData = `#!/bin/sh\nsystemd-run ${sleep.command}\n(setsid ${sleep.command} &)\n`
    const machines = Array.from({ length: 20 }, () => world.create({ enclosure, userData }))
    await Promise.all(machines.map((machine) => machine.boot()))
    await until(() => sleep.pids().length === 40, 50_000)
    await Promise.all(machines.map((machine) => machine.kill()))
    expect(sleep.pids()).toEqual([])
    expect(processesBelow(world.directory)).toEqual([])
  })

  it('follows that of the simulator, however sudden', async () => {
    const world = createWorld()
    const sleep = uniqueSleep()
    const program = `
      const { createMachine } = require('./src/machines/machine.ts')
      const machine = createMachine({
        id: 'i-orphan', directory: process.argv[1], metadata: {}, environment: {}, bootMs: 0, enclosure: '${enclosure}',
        userData: '#!/bin/sh\\nsystemd-run ${sleep.command}\\n(setsid sh -c "${sleep.command} &" &)\\n',
      })
      machine.boot()`
    const args = ['--import', './test/support/typescript.mjs', '-e', program, join(world.directory, 'orphan')]
    const simulator = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] })
    await until(() => sleep.pids().length === 2, 50_000)
    simulator.kill('SIGKILL')
    await once(simulator, 'exit')
    await until(() => sleep.pids().length === 0)
  })
})

/** Processes whose command line names something below a directory. */
function processesBelow(directory: string): string[] {
  const { stdout } = spawnSync('ps', ['-axwwo', 'args='], { encoding: 'utf8' })
  return stdout.split('\n').filter((line) => line.includes(directory))
}

describe('a machine of namespaces', () => {
  const test = HAS_NAMESPACES ? it : it.skip

  test('tells when its first process is killed from outside', async () => {
    const machine = createWorld().create({ enclosure: 'namespaces' })
    const ends: string[] = []
    machine.onPowerOff((how) => ends.push(how))
    await machine.boot()
    const sleep = uniqueSleep()
    await sh(machine, `systemd-run ${sleep.command}`)
    // systemd-run returns when there is a process, which may not have become the program yet.
    await until(() => sleep.pids().length === 1)
    process.kill(firstProcessOf(machine, sleep.pids()[0]!), 'SIGKILL')
    await until(() => ends.length > 0)
    expect(ends).toEqual(['init-ended'])
    expect(sleep.pids()).toEqual([])
    await expect(sh(machine, 'true')).rejects.toThrow('is off')
  })

  test('does not end when it signals all that it may', async () => {
    const machine = createWorld().create({ enclosure: 'namespaces' })
    await machine.boot()
    await sh(machine, 'kill -KILL -1')
    expect(await sh(machine, 'echo still here')).toMatchObject({ stdout: 'still here\n' })
  })

  /** The process with number 1 in the same PID namespace. */
  function firstProcessOf(_machine: Machine, member: number): number {
    const spaceOf = (pid: number | string) =>
      spawnSync('readlink', [`/proc/${pid}/ns/pid`], { encoding: 'utf8' }).stdout
    const space = spaceOf(member)
    const { stdout } = spawnSync('sh', ['-c', 'grep -l "^NSpid:.*[^0-9]1$" /proc/[0-9]*/status'], {
      encoding: 'utf8',
    })
    const pids = stdout.split('\n').flatMap((line) => /\/proc\/(\d+)\//.exec(line)?.[1] ?? [])
    expect(space).not.toBe('')
    return Number(pids.find((pid) => spaceOf(pid) === space))
  }
})
