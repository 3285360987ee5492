import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from '@jest/globals'
import { openOwnStore } from '../../service/deployment'
import { openDeploymentKey } from '../../storage/deployment-key'
import { putDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import { openStore } from '../../storage/open-store'
import { noteSubmission } from '../../storage/submissions'
import { SPEC } from '../client/world'
import { testFolder } from '../support/folders'
import { markedStore, STORE_OWNER } from '../support/marked-store'

const claim = (folder: string, held?: string) => ({
  known: () => Promise.resolve(held),
  secretKeyFile: join(folder, 'secret.key'),
})

describe('the store of a worker', () => {
  it('is made when neither the place nor the server knows a deployment', async () => {
    const folder = testFolder('own-store')
    const store = openStore(pathToFileURL(join(folder, 'new', 'store')).href)
    const id = await openOwnStore(store, claim(folder))
    expect(id).toMatch(/^dep-/)
    expect(await openOwnStore(store, claim(folder, 'dep-zzzzzzzzzz'))).toBe(id)
  })

  it('is that of another worker which makes it at the same time', async () => {
    const folder = testFolder('own-store')
    const url = pathToFileURL(join(folder, 'new', 'store')).href
    const made: string[] = []
    const known = async (): Promise<string> => {
      made.push(await openOwnStore(openStore(url), claim(folder)))
      return made[0]!
    }
    expect(await openOwnStore(openStore(url), { ...claim(folder), known })).toBe(made[0])
  })

  it('is not made again when its disk is away: a missing folder and an empty one have different messages', async () => {
    const folder = testFolder('own-store')
    const missing = openStore(pathToFileURL(join(folder, 'missing')).href)
    await expect(openOwnStore(missing, claim(folder, STORE_OWNER))).rejects.toThrow(
      /is missing: mount its disk/,
    )
    const empty = openStore(pathToFileURL(testFolder('mount-point')).href)
    await expect(openOwnStore(empty, claim(folder, STORE_OWNER))).rejects.toThrow(/is empty or was emptied/)
    expect(await readdir(folder)).toEqual([])
  })

  it('gets its mark again from its jobs, if it has the record of the own key', async () => {
    const folder = testFolder('own-store')
    const root = join(folder, 'store')
    const before = markedStore(root)
    await openDeploymentKey(before, join(folder, 'secret.key'))
    const input = { jobId: 'job-a', spec: SPEC, deployment: STORE_OWNER, submittedAtMs: 1 }
    await putDocument(before, layout.record('job-a', 0), { seq: 0, atMs: 1, kind: 'submitted', data: input })
    await noteSubmission(before, input)
    await rm(join(root, layout.deployment()))
    const store = openStore(pathToFileURL(root).href)
    const stranger = claim(testFolder('stranger'))
    await expect(openOwnStore(store, stranger)).rejects.toThrow(/is empty or was emptied/)
    await expect(openOwnStore(store, claim(folder, 'dep-zzzzzzzzzz'))).rejects.toThrow(
      /is empty or was emptied/,
    )
    expect(await openOwnStore(store, claim(folder))).toBe(STORE_OWNER)
  })
})
