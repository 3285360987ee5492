import { describe, expect, it } from '@jest/globals'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { answeringStore } from '../../client/answering-store'
import { toCrucibleError } from '../../client/errors'
import { openStore } from '../../storage/open-store'
import type { ObjectStore } from '../../storage/store'
import { MemoryStore } from '../backends/scripted/memory-store'
import { withFolder } from '../kit/folder'

const LIMIT_MS = 300

/** A store that answers nothing from the moment when it hangs. */
function hanging(): { store: ObjectStore; hang: () => void; goOn: () => void } {
  const memory = new MemoryStore(() => 0)
  let waiting: Promise<void> = Promise.resolve()
  let goOn = (): void => undefined
  const hang = (): void => {
    waiting = new Promise((resolve) => (goOn = resolve))
  }
  const head = memory.head.bind(memory)
  memory.head = (key) => waiting.then(() => head(key))
  const store = answeringStore(memory, { limitMs: LIMIT_MS, ask: () => waiting })
  return { store, hang, goOn: () => goOn() }
}

describe('a store for a person who waits', () => {
  it('throws once it has not answered for long, at once from then on, and answers again when it is back', async () => {
    const { store, hang, goOn } = hanging()
    await store.put('a', 'text')
    hang()
    const error = await store.head('a').catch((thrown: unknown) => thrown)
    expect(toCrucibleError(error)).toMatchObject({ kind: 'unavailable', exitCode: 7 })
    const beganMs = performance.now()
    await expect(store.get('a')).rejects.toThrow(/has not answered within/)
    await expect(store.listFolders('')).rejects.toThrow(/has not answered within/)
    expect(performance.now() - beganMs).toBeLessThan(LIMIT_MS)
    goOn()
    await new Promise(setImmediate)
    expect(await store.head('a')).toMatchObject({ key: 'a' })
    const listed: string[] = []
    for await (const { key } of store.list('')) listed.push(key)
    expect(listed).toEqual(['a'])
  })

  it('is not asked by this process before another one had an answer', async () => {
    let asks = 0
    const memory = new MemoryStore(() => 0)
    memory.head = () => {
      asks += 1
      return Promise.resolve(undefined)
    }
    const store = answeringStore(memory, { limitMs: LIMIT_MS, ask: () => new Promise(() => undefined) })
    await expect(store.head('a')).rejects.toThrow(/has not answered within/)
    await expect(store.head('a')).rejects.toThrow(/has not answered within/)
    expect(asks).toBe(0)
  })

  it('is answered for by its mark, which may be missing', () =>
    withFolder('mark', async (folder) => {
      const url = pathToFileURL(folder).href
      expect(await answeringStore(openStore(url)).get('a')).toBeUndefined()
      // A pipe answers no reader.
      execFileSync('mkfifo', [join(folder, 'deployment.json')])
      const store = answeringStore(openStore(url), { limitMs: LIMIT_MS })
      await expect(store.get('a')).rejects.toThrow(/has not answered/)
      writeFileSync(join(folder, 'deployment.json'), '')
    }))
})
