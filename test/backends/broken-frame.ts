/** Judges and measures calls whose answers a provider breaks. */
import { Socket } from 'node:net'
import { expect, jest } from '@jest/globals'
import { BackendError, failureOf } from '../../backends/errors'
import { RAW_WORDS } from '../kit/invariants'
import type { Fault } from './broken-answers'

/** Returns the outcome of a call, which ends within its time limit; a refusal has words for a person. */
export async function outcomeOf<T>(fault: Fault, ask: () => Promise<T>): Promise<T | 'refused'> {
  const timers = fault.isEndless === true ? hurryTimers() : undefined
  try {
    return await ask()
  } catch (error) {
    expect(error).toBeInstanceOf(BackendError)
    expect(failureOf(error).message).not.toMatch(RAW_WORDS)
    return 'refused'
  } finally {
    timers?.restore()
  }
}

type Silence = (this: Socket, ms: number, run?: () => void) => Socket

const LONG_TIMER_MS = 2_000
const FASTER = 100

/** Lets long timers of this process and its sockets ring a hundred times sooner, until it is restored: time limits end in a moment. */
function hurryTimers(): { restore: () => void } {
  const hurried = (ms: number): number => (ms >= LONG_TIMER_MS ? ms / FASTER : ms)
  const start = globalThis.setTimeout
  const startSooner = (run: () => void, ms = 0, ...rest: []): NodeJS.Timeout =>
    start(run, hurried(ms), ...rest)
  const timers = jest.spyOn(globalThis, 'setTimeout').mockImplementation(startSooner)
  const { value: original } = Object.getOwnPropertyDescriptor(Socket.prototype, 'setTimeout') as {
    value: Silence
  }
  const sockets = jest.spyOn(Socket.prototype, 'setTimeout').mockImplementation(function (
    this: Socket,
    ms,
    run,
  ) {
    return original.call(this, hurried(ms), run)
  })
  return {
    restore: () => {
      timers.mockRestore()
      sockets.mockRestore()
    },
  }
}
