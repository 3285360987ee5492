import { describe, expect, it, jest } from '@jest/globals'
import { runInThisContext } from 'node:vm'
import type * as zod from 'zod'
import type * as errors from '../../core/errors'
import { SingleContext } from './single-context'

type Wanted = ConstructorParameters<typeof SingleContext>

const setUp = (): SingleContext =>
  new SingleContext({ projectConfig: { fakeTimers: {} } } as Wanted[0], {} as Wanted[1])

describe('a test file', () => {
  it('runs in the context of its process', () => {
    expect(runInThisContext('globalThis')).toBe(globalThis)
    expect(runInThisContext('new Map()')).toBeInstanceOf(Map)
  })

  it('shares packages with others, but none of our modules', () => {
    const load = (): [unknown, unknown] => [
      jest.requireActual<typeof zod>('zod'),
      jest.requireActual<typeof errors>('../../core/errors'),
    ]
    const [firstPackage, firstModule] = load()
    jest.isolateModules(() => {
      const [secondPackage, secondModule] = load()
      expect(secondPackage).toBe(firstPackage)
      expect(secondModule).not.toBe(firstModule)
    })
  })

  it('leaves globals, environment variables and the process as they were', async () => {
    const { structuredClone: clone, process: own } = globalThis
    const { PATH } = process.env
    const exit = Reflect.get(process, 'exit') as unknown
    const context = setUp()
    Object.assign(globalThis, { structuredClone: undefined, leftBehind: 1 })
    Object.assign(process.env, { PATH: 'elsewhere', LEFT_BEHIND: '1' })
    process.exit = () => undefined as never

    await context.teardown()

    expect(globalThis).not.toHaveProperty('leftBehind')
    expect(globalThis.structuredClone).toBe(clone)
    expect(globalThis.process).toBe(own)
    expect(Reflect.get(process, 'exit')).toBe(exit)
    expect(process.env['PATH']).toBe(PATH)
    expect(process.env).not.toHaveProperty('LEFT_BEHIND')
  })

  it('keeps listeners of the process, which may be those of a shared package', async () => {
    const context = setUp()
    const listener = (): void => undefined
    process.on('SIGUSR2', listener)
    await context.teardown()
    expect(process.listeners('SIGUSR2')).toContain(listener)
    process.off('SIGUSR2', listener)
  })
})
