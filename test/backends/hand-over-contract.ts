import { describe, expect } from '@jest/globals'
import { settleAttempt } from '../../activities/settle/settle'
import { shareLooks } from '../../activities/settle/shared-looks'
import type { Order } from '../../core/job/plan'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { Ages } from '../../core/time/ages'
import { listHandOvers } from '../../storage/hand-overs'
import { layout } from '../../storage/layout'
import { until } from '../support/until'
import { deedsOn } from './deeds'
import { patiently, settled, type HandOversHarness, type Harness } from './harness'

/**
 * The part of the contract about hand-overs: each
 *    is deleted by the machine that reads it; then nothing that the provider keeps opens anything
 *    is all that a machine needs: one that finds it gone does nothing
 *    is taken by no second machine of its send
 *    is gone once the attempt is settled, also where no machine has read it
 *
 * @param takes registers a test where the backend's machines take hand-overs
 */
export function describeHandOvers(
  harness: () => Harness,
  takes: (test: string, run: () => Promise<void>) => void,
): void {
  describe('hand-over', () => {
    const { send, launch, observe, claimantOf } = deedsOn(harness)
    const handOvers = (): HandOversHarness => harness().handOvers!
    const isClaimed = async ({ jobId, attempt }: Order): Promise<boolean> =>
      (await harness().store.head(layout.claim(jobId, attempt))) !== undefined
    const leftOf = async ({ jobId, attempt }: Order): Promise<string[]> =>
      (await listHandOvers(harness().store)).flatMap((one) =>
        one.jobId === jobId && one.attempt === attempt ? [one.key] : [],
      )
    /** How many of the URLs that were given out still open something. */
    const openOf = async (of: HandOversHarness): Promise<number> =>
      (await Promise.all(of.issued.map(({ url }) => of.read(url)))).filter((body) => body !== undefined)
        .length

    takes(
      'is deleted by the machine that reads it; then nothing that the provider keeps opens anything',
      async () => {
        const order = await harness().order()
        const handOver = handOvers()
        const handle = await launch(order)
        expect(await claimantOf(order, [handle])).toBe(handle)
        expect(await leftOf(order)).toEqual([])
        expect([handOver.issued.length, await openOf(handOver)]).toEqual([1, 0])
        const kept = handOver.keptOf(order.attemptId)
        // What could open it is there, and is all that is there.
        expect(kept).toContain(handOver.issued[0]!.key)
        for (const secret of handOver.secretsOf(order.attemptId)) expect(kept).not.toContain(secret)
      },
    )

    takes('is all that a machine needs: one that finds it gone does nothing', async () => {
      const order = await harness().order()
      handOvers().deleteNext()
      await launch(order)
      expect(await handOvers().takenOf(order.attemptId)).toBe(0)
      expect(await isClaimed(order)).toBe(false)
      if (harness().backend.capabilities.billsUntil === 'exit')
        await until(async () => (await harness().runningOf(order.attemptId)) === 0)
    })

    takes('is taken by no second machine of its send', async () => {
      const order = await harness().order()
      const handle = await launch(order)
      expect(await claimantOf(order, [handle])).toBe(handle)
      await handOvers().repeatSend(order)
      expect(await handOvers().takenOf(order.attemptId)).toBe(1)
      expect((await observe(handle)).state).not.toBe('gone')
    })

    takes('is gone once the attempt is settled, also where no machine has read it', async () => {
      const order = await harness().order({ isStuck: true })
      const handle = await launch(order)
      expect([(await leftOf(order)).length, await openOf(handOvers())]).toEqual([1, 1])
      const [{ backend, store }, { signal }] = [harness(), patiently()]
      const maskSecrets = async (_jobId: string, text: string): Promise<string> => text
      const timing = { ...DEFAULT_TIMING, ...order.runner, powerOffMs: 0, observeMs: 10 }
      const monotonicMs = (): number => performance.now()
      const looks = shareLooks(backend, monotonicMs)
      await settleAttempt(
        {
          backend,
          store,
          now: Date.now,
          monotonicMs,
          looks,
          ages: new Ages({ now: Date.now, monotonicMs: Date.now }),
          maskSecrets,
        },
        { order, handle, timing, windowMs: 0, end: null, drainReason: null, recordSeq: 1 },
        signal,
      )
      expect([await leftOf(order), await openOf(handOvers())]).toEqual([[], 0])
      // A worker that was paused for long puts none.
      await settled(send(order))
      expect(await leftOf(order)).toEqual([])
    })
  })
}
