import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { runOnMachine } from '../../../../backends/ec2/machine/commands'
import type { Host } from '../../../../backends/ec2/host'

const RUNNING = { status: 'InProgress', details: 'InProgress', exitCode: -1, stdout: '', stderr: '' }
const DONE = { status: 'Success', details: 'Success', exitCode: 0, stdout: 'done', stderr: '' }

describe('waiting for the answer to a command', () => {
  beforeEach(() => void jest.useFakeTimers({ now: 0 }))
  afterEach(() => void jest.useRealTimers())

  /** Runs a command that takes this long; how much later its answer is known, and how often it was asked for. */
  async function wait(tookMs: number): Promise<{ lateMs: number; looks: number }> {
    const endsAtMs = Date.now() + tookMs
    const result = jest.fn(async () => (Date.now() < endsAtMs ? RUNNING : DONE))
    const commands = { invocations: async () => [], send: async () => 'command-1', result }
    const host = { api: { commands }, deps: { clock: Date.now } } as unknown as Host
    const command = { machineId: 'i-1', comment: 'crucible start', lines: [], goodForMs: 0 }
    const answered = runOnMachine(host, command, new AbortController().signal).then(({ stdout }) => {
      expect(stdout).toBe('done')
      return Date.now()
    })
    await jest.advanceTimersByTimeAsync(10_000)
    return { lateMs: (await answered) - endsAtMs, looks: result.mock.calls.length }
  }

  it('is over half a second after it at the latest, and asks at most twice a second', async () => {
    const late: number[] = []
    for (let tookMs = 25; tookMs < 7_900; tookMs += 25) {
      const { lateMs, looks } = await wait(tookMs)
      expect(lateMs).toBeGreaterThanOrEqual(0)
      expect(lateMs).toBeLessThanOrEqual(500)
      expect(looks).toBeLessThanOrEqual(4 + tookMs / 500)
      late.push(lateMs)
    }
    expect(late.reduce((sum, ms) => sum + ms, 0) / late.length).toBeLessThan(250)
  })
})
