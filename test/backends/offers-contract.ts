import { describe, expect, it } from '@jest/globals'
import type { Backend } from '../../backends/backend'
import { offerKey } from '../../core/offer'
import { patiently, type Harness } from './harness'

/** The part of the contract (`contract.ts`) about offers. */
export function describeOffers(harness: () => Harness): void {
  const backendOf = (): Backend => harness().backend
  describe('offers', () => {
    it('are priced possibilities of the capacity types it has, each with source and age of its price', async () => {
      const beforeMs = Date.now()
      const offers = await backendOf().offers({}, patiently())
      const { capacityTypes, price } = backendOf().capabilities
      expect(new Set(offers.map((offer) => offer.capacityType))).toEqual(new Set(capacityTypes))
      for (const offer of offers) {
        expect(offer.backend).toBe(backendOf().name)
        expect(Number.isInteger(offer.priceMicroUsdPerHour)).toBe(true)
        expect(offer.priceSource.kind).toBe(price)
        expect(offer.priceSource.observedAtMs).toBeGreaterThanOrEqual(price === 'static' ? 0 : beforeMs)
        expect(offer.priceSource.observedAtMs).toBeLessThanOrEqual(Date.now())
      }
      expect(new Set(offers.map(offerKey)).size).toBe(offers.length)
    })

    it('are the same whether in stock or not', async () => {
      const before = await backendOf().offers({}, patiently())
      expect(before.length).toBeGreaterThan(0)
      await harness().fill()
      const after = await backendOf().offers({}, patiently())
      expect(after.map(offerKey)).toEqual(before.map(offerKey))
      expect(after.filter((offer) => offer.availability === 'available')).toEqual([])
    })

    it('are larger than asked, if need be', async () => {
      const offers = await backendOf().offers(
        { cpus: { min: 1, max: 1 }, memoryGiB: { max: 0.001 } },
        patiently(),
      )
      expect(offers.length).toBeGreaterThan(0)
    })

    it('are what comes nearest where nothing could hold the request', async () => {
      expect(await backendOf().offers({ cpus: { min: 1e6 } }, patiently())).not.toEqual([])
      expect(await backendOf().offers({ accelerators: ['NoSuchGPU'] }, patiently())).not.toEqual([])
    })

    it('keep to what an earlier one of the job has pinned, after a restart, too', async () => {
      const [first] = await backendOf().offers({}, patiently())
      const again = await (await harness().reopen()).offers({}, patiently(), first!.pins)
      expect(again.find((offer) => offerKey(offer) === offerKey(first!))?.pins).toEqual(first!.pins)
    })
  })
}
