import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { acquireLock, type Lock, type LockEntry } from '../../../../cli/dev/temporal/lock'
import { identify } from '../../../../service/process-identity'

let folder: string
const locks: ReturnType<typeof acquireLock<string>>[] = []

beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'crucible-lock-')), 'lock')
})

afterEach(() => {
  rmSync(join(folder, '..'), { recursive: true, force: true })
})

function acquire(info: string): ReturnType<typeof acquireLock<string>> {
  return acquireLock(folder, { info, waitMs: 0 })
}

async function acquired(info: string): Promise<Lock<string>> {
  const lock = await acquire(info)
  if ('heldBy' in lock) throw new Error(`held by ${lock.heldBy.info}`)
  return lock
}

const dead = { pid: 1, started: 'before the last boot' }

describe('acquireLock', () => {
  it('gives the lock to one process at a time, and names the holder to the others', async () => {
    const lock = await acquired('first')
    lock.update('first, with more to tell')
    expect(await acquire('second')).toEqual({
      heldBy: { processes: [identify(process.pid)], info: 'first, with more to tell' },
    })
    lock.release()
    ;(await acquired('second')).release()
    expect(readdirSync(folder)).toEqual([])
  })

  it('passes the lock to the waiting process, and names the previous holder', async () => {
    const first = await acquired('first')
    const holder = await new Promise<LockEntry<string>>((resolve) => {
      const second = acquireLock(folder, { info: 'second', waitMs: 60_000, onWait: resolve })
      locks.push(second)
    })
    expect(holder.info).toBe('first')
    first.release()
    expect(await locks[0]).not.toHaveProperty('heldBy')
    expect(await acquire('third')).toMatchObject({ heldBy: { info: 'second' } })
  })

  it('never lets two processes in, however many come at once', async () => {
    const source = `
      const { mkdirSync, rmdirSync } = require('node:fs')
      const { acquireLock } = require(${JSON.stringify(require.resolve('../../../../cli/dev/temporal/lock.ts'))})
      const folder = ${JSON.stringify(folder)}
      async function run() {
        for (let turn = 0; turn < 15; turn += 1) {
          const lock = await acquireLock(folder, { info: null, waitMs: 60_000 })
          mkdirSync(folder + '-inside')
          await new Promise((resolve) => setTimeout(resolve, turn % 3))
          rmdirSync(folder + '-inside')
          lock.release()
        }
      }
      run().catch((error) => { console.error(error); process.exitCode = 1 })`
    const hook = require.resolve('../../../support/typescript.mjs')
    const runs = [1, 2, 3].map(async () => {
      const child = spawn(process.execPath, ['--import', hook, '-e', source], { stdio: 'inherit' })
      return (await once(child, 'exit')) as [number]
    })
    expect(await Promise.all(runs)).toEqual([
      [0, null],
      [0, null],
      [0, null],
    ])
  })

  it('removes the lock that a dead owner or a power cut left behind', async () => {
    ;(await acquired('makes the folder')).release()
    writeFileSync(join(folder, '1-1.json'), JSON.stringify({ processes: [dead], info: 'dead' }))
    writeFileSync(join(folder, '2-1.json'), '')
    const lock = await acquired('living')
    expect(readdirSync(folder)).toHaveLength(1)
    lock.release()
  })

  it('is still held when the owner is dead but a process it named lives', async () => {
    ;(await acquired('makes the folder')).release()
    const entry = { processes: [dead, identify(process.pid)], info: 'orphan' }
    writeFileSync(join(folder, '1-1.json'), JSON.stringify(entry))
    expect(await acquire('next')).toEqual({ heldBy: entry })
  })

  it('stops waiting on request', async () => {
    const lock = await acquired('first')
    const giveUp = new AbortController()
    const waiting = acquireLock(folder, { info: 'second', waitMs: 60_000, signal: giveUp.signal })
    giveUp.abort()
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' })
    lock.release()
    expect(readdirSync(folder)).toEqual([])
  })
})
