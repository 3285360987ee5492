import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from '@jest/globals'
import { identify, isAlive } from '../../service/process-identity'
import { until } from '../support/until'

/** Linux has `ps` too, so the way of other systems can be tried there. */
const platforms = process.platform === 'linux' ? (['linux', 'darwin'] as const) : [process.platform]

describe('a process identity', () => {
  it.each(platforms)('on %s stays the same while the process lives and is gone with it', async (platform) => {
    const child = spawn('sleep', ['60'])
    await once(child, 'spawn')
    const identity = identify(child.pid!, platform)!
    expect(identify(child.pid!, platform)).toEqual(identity)
    expect(identity.started).toMatch(platform === 'linux' ? /-.*\/\d+$/ : /\d\d:\d\d:\d\d \d{4}$/)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(identify(child.pid!, platform)).toBeUndefined()
  })

  it.each(platforms)('on %s does not match a zombie process', async (platform) => {
    // The shell becomes something that never asks how its child ended; until then it would.
    const parent = spawn('/bin/sh', ['-c', 'sleep 60 & echo $!; exec sleep 60'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const [line] = (await once(parent.stdout, 'data')) as [Buffer]
    const command = (): string =>
      spawnSync('ps', ['-o', 'comm=', '-p', String(parent.pid)], { encoding: 'utf8' }).stdout
    await until(() => command().includes('sleep'))
    process.kill(Number(line), 'SIGKILL')
    await until(() => identify(Number(line), platform) === undefined)
    expect(() => process.kill(Number(line), 0)).not.toThrow()
    parent.kill('SIGKILL')
    await once(parent, 'exit')
  })

  it('differs for another process with the same process id', () => {
    const own = identify(process.pid)!
    expect(isAlive(own)).toBe(true)
    expect(isAlive({ ...own, started: `${own.started}0` })).toBe(false)
  })
})
