import { describe, expect, it } from '@jest/globals'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Shutdown } from '../../src/machines/shutdown'
import { until } from '../support/until'
import { KINDS, sh, uniqueSleep, useMachines } from './machines'

const createWorld = useMachines()

describe.each(KINDS)('a machine of %s that turns itself off', (enclosure) => {
  it.each(['shutdown -h now', 'poweroff', 'systemctl poweroff', 'halt'])('by %s', async (command) => {
    const machine = createWorld().create({ enclosure })
    const ends: string[] = []
    machine.onPowerOff((how) => ends.push(how))
    await machine.boot()
    const sleep = uniqueSleep()
    await sh(machine, `systemd-run ${sleep.command}`)
    await Promise.allSettled([sh(machine, command)])
    await until(() => ends.length > 0)
    expect(ends).toEqual(['shutdown'])
    expect(sleep.pids()).toEqual([])
    expect(await machine.console()).toMatch(/going down\n.*: off\n$/)
  })

  it('lets its units end well first', async () => {
    const world = createWorld()
    const directory = join(world.directory, 'disk')
    const machine = world.create({ enclosure, directory })
    let isOff = false
    machine.onPowerOff(() => (isOff = true))
    await machine.boot()
    const script =
      'trap "sleep 0.5; echo saved > \\"$STATE_DIRECTORY/saved\\"; exit 0" TERM; echo > "$STATE_DIRECTORY/ready"; while :; do sleep 0.1; done'
    await sh(
      machine,
      `systemd-run --unit=work -p StateDirectory=crucible -p KillMode=mixed sh -c '${script}'`,
    )
    const state = join(directory, 'var/lib/crucible')
    await until(() => existsSync(join(state, 'ready')))
    await machine.shutDown()
    expect(isOff).toBe(true)
    expect(readFileSync(join(state, 'saved'), 'utf8')).toBe('saved\n')
  })

  it('and is not told of when the power is cut', async () => {
    const machine = createWorld().create({ enclosure })
    const ends: string[] = []
    machine.onPowerOff((how) => ends.push(how))
    await machine.boot()
    await machine.kill()
    await machine.shutDown()
    expect(ends).toEqual([])
  })
})

describe('shutdown', () => {
  const call = (shutdown: Shutdown, ...words: string[]) =>
    shutdown.call({ program: 'shutdown', arguments: words, directory: '/' })

  it('says when it will be, in minutes from now or at a time of the day', () => {
    const shutdown = new Shutdown(
      () => undefined,
      () => Date.parse('2026-11-21T23:58:00Z'),
    )
    expect(call(shutdown, '-h', '+5').stderr).toContain('Sun, 22 Nov 2026 00:03:00 UTC')
    expect(call(shutdown).stderr).toContain('Sat, 21 Nov 2026 23:59:00 UTC')
    expect(call(shutdown, '-P', '00:01', 'good', 'night').stderr).toContain('Sun, 22 Nov 2026 00:01:00 UTC')
    expect(call(shutdown, '23:58').stderr).toContain('Sun, 22 Nov 2026 23:58:00 UTC')
    expect(call(shutdown, '-c')).toMatchObject({ exitCode: 0 })
  })

  it('can be taken back, and is not taken for what it is not', () => {
    let isOff = false
    const shutdown = new Shutdown(() => (isOff = true))
    call(shutdown, '+1')
    call(shutdown, '-c')
    expect(() => call(shutdown, '-r', 'now')).toThrow('do not start again')
    expect(() => call(shutdown, 'tomorrow')).toThrow('Failed to parse time')
    expect(() => call(shutdown, '--frob', 'now')).toThrow('unrecognized option')
    expect(isOff).toBe(false)
    call(shutdown, 'now')
    expect(isOff).toBe(true)
  })
})
