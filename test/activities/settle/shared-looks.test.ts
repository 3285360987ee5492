import { describe, expect, it } from '@jest/globals'
import { shareLooks } from '../../../activities/settle/shared-looks'
import type { Backend } from '../../../backends/backend'
import type { MachineHandle } from '../../../core/handle'
import type { Observation } from '../../../core/observation'
import { patiently } from '../../backends/harness'

const machine = (id: string): MachineHandle => ({ id }) as MachineHandle
const OBSERVE_MS = 80

/** A provider in two parts that records the looks at its machines, and does not answer about one of them. */
function provider(): { backend: Backend; looks: { ids: string[]; atMs: number }[] } {
  const looks: { ids: string[]; atMs: number }[] = []
  const observe = async (handles: MachineHandle[]): Promise<(Observation | undefined)[]> => {
    looks.push({ ids: handles.map(({ id }) => id), atMs: performance.now() })
    if (handles.some(({ id }) => id.startsWith('broken'))) throw new Error('this part is away')
    return handles.map(({ id }) => (id === 'silent' ? undefined : { state: 'running', detail: id }))
  }
  const placeOf = ({ id }: MachineHandle): string => (id.startsWith('broken') ? 'b' : 'a')
  const capabilities = { pace: { observeMs: OBSERVE_MS } }
  return { backend: { name: 'here', observe, placeOf, capabilities } as never, looks }
}

describe('looks of many settlements', () => {
  it('are one call for all that wait, at the pace of the provider, each with its own answer', async () => {
    const { backend, looks } = provider()
    const look = shareLooks(backend, () => performance.now())
    const ids = ['a', 'b', 'silent', 'c']
    const results = await Promise.allSettled(ids.map((id) => look(machine(id), patiently().signal)))
    expect(looks.map((one) => one.ids)).toEqual([['a'], ['b', 'silent', 'c']])
    expect(looks[1]!.atMs - looks[0]!.atMs).toBeGreaterThanOrEqual(OBSERVE_MS - 1)
    expect(results.map((one) => (one.status === 'fulfilled' ? one.value.detail : one.status))).toEqual([
      'a',
      'b',
      'rejected',
      'c',
    ])
  })

  it('do not fail because another part of the provider does', async () => {
    const { backend } = provider()
    const look = shareLooks(backend, () => performance.now())
    const [broken, whole] = await Promise.allSettled(
      ['broken-1', 'a'].map((id) => look(machine(id), patiently().signal)),
    )
    expect([broken!.status, whole!.status]).toEqual(['rejected', 'fulfilled'])
  })
})
