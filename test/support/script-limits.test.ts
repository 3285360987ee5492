import { describe, expect, it } from '@jest/globals'
import { readdirSync } from 'node:fs'
import { createContext, Script } from 'node:vm'

const onLinux = process.platform === 'linux' ? it : it.skip
const threads = (): number => readdirSync('/proc/self/task').length

describe('a script of a test', () => {
  it('ends at its limit', () => {
    const endless = new Script('for (;;) ;')
    expect(() => endless.runInContext(createContext(), { timeout: 20 }) as unknown).toThrow(
      'timed out after 20ms',
    )
  })

  onLinux(
    'has no thread that would end it after 49 days, which is the limit of workflow code in debug mode',
    () => {
      const count = new Script('threads()')
      const others = threads()
      const context = createContext({ threads })
      expect(count.runInContext(context, { timeout: 2 ** 32 - 1, displayErrors: true })).toBe(others)
      expect(count.runInContext(context, { timeout: 60_000 })).toBe(others + 1)
    },
  )
})
