import { afterEach, describe, expect, it, jest } from '@jest/globals'
import type { checkHost } from '../../src/machines/machine'

const platform = process.platform

afterEach(() => {
  Object.defineProperty(process, 'platform', { value: platform })
})

describe('a host without namespaces', () => {
  it('runs machines, but no containers of Modal, and says so before anything starts', async () => {
    Object.defineProperty(process, 'platform', { value: 'darwin' })
    let check: typeof checkHost
    jest.isolateModules(() => {
      ;({ checkHost: check } = jest.requireActual<{ checkHost: typeof checkHost }>(
        '../../src/machines/machine',
      ))
    })
    await check!()
    await expect(check!({ hasContainers: true })).rejects.toThrow("Modal's containers need user namespaces")
  })
})
