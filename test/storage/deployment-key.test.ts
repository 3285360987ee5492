import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { openDeploymentKey } from '../../storage/deployment-key'
import { closeHome, homeOf } from '../../storage/home'
import { putDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import { SecretsError } from '../../storage/secrets'
import { MemoryStore } from '../backends/scripted/memory-store'
import { testFolder } from '../support/folders'
import { STORE_OWNER } from '../support/marked-store'

describe('openDeploymentKey', () => {
  it('makes a key for a new deployment, gives it again, and says nothing of it in the store', async () => {
    const store = new MemoryStore(() => 0)
    await putDocument(store, layout.deployment(), { id: STORE_OWNER })
    const path = join(testFolder('key'), 'secret.key')
    const key = await openDeploymentKey(store, path)
    expect(readFileSync(path, 'utf8').trim()).toBe(key.toString('hex'))
    expect(await openDeploymentKey(store, path)).toEqual(key)
    const check = (await store.get(layout.deploymentKey()))!.toString('utf8')
    expect(check).not.toContain(key.toString('hex').slice(0, 16))
  })

  it('writes nothing into a place without the mark of a deployment, which may be an empty mount point', async () => {
    const store = new MemoryStore(() => 0)
    await openDeploymentKey(store, join(testFolder('key'), 'secret.key'))
    expect(await store.get(layout.deploymentKey())).toBeUndefined()
  })

  it('refuses another key than the deployment has, and makes no second one', async () => {
    const store = new MemoryStore(() => 0)
    await putDocument(store, layout.deployment(), { id: STORE_OWNER })
    const folder = testFolder('key')
    await openDeploymentKey(store, join(folder, 'first.key'))
    const absent = join(folder, 'absent.key')
    await expect(openDeploymentKey(store, absent)).rejects.toThrow(/There is no key file .*absent\.key, and/)
    expect(() => statSync(absent)).toThrow('ENOENT')
    writeFileSync(absent, `${'ab'.repeat(32)}\n`, { mode: 0o600 })
    const wrong = openDeploymentKey(store, absent)
    await expect(wrong).rejects.toBeInstanceOf(SecretsError)
    await expect(wrong).rejects.toThrow(/is not the one of the deployment .*CRUCIBLE_SECRET_KEY_FILE/)
  })
})

describe('closeHome', () => {
  const homeAt = (directory: string) => homeOf({ CRUCIBLE_HOME: directory })
  const modeOf = (path: string): number => statSync(path).mode & 0o777

  it('makes a home that other users cannot enter', () => {
    const directory = join(testFolder('home'), 'new', 'home')
    closeHome(homeAt(directory), process.getuid?.())
    expect(modeOf(directory)).toBe(0o700)
  })

  it('closes one that was open, unless it belongs to another user', () => {
    const directory = join(testFolder('home'), 'open')
    mkdirSync(directory)
    chmodSync(directory, 0o755)
    closeHome(homeAt(directory), 12_345)
    expect(modeOf(directory)).toBe(0o755)
    closeHome(homeAt(directory), process.getuid?.())
    expect(modeOf(directory)).toBe(0o700)
  })
})
