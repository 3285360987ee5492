import { describe, expect, it } from '@jest/globals'
import { canonicalJson, withInstants, withoutInstants } from '../../core/market'
import { answer, offer } from '../planner/wishes'

const at = (observedAtMs: number) => offer({ priceSource: { kind: 'live', observedAtMs } })
const WAY = { storeRegion: 'r', upMicroUsdPerGb: 1, downMicroUsdPerGb: 2, bytesPerSecond: 3 }

describe('a market document', () => {
  it('is the same for readings of equal offers at different times, and gives each back exactly', () => {
    const reading = (firstMs: number, secondMs: number) =>
      answer([
        at(firstMs),
        { ...at(secondMs), transfer: { ...WAY, priceSource: { kind: 'live', observedAtMs: firstMs } } },
        at(firstMs),
      ])
    const [one, other] = [reading(5, 7), reading(1_000, 900)]
    const [a, b] = [withoutInstants(one), withoutInstants(other)]
    expect(a.text).toBe(b.text)
    expect([a.instantsMs, b.instantsMs]).toEqual([
      [5, 7],
      [1_000, 900],
    ])
    expect(withInstants(a.text, a.instantsMs)).toEqual(one)
    expect(withInstants(b.text, b.instantsMs)).toEqual(other)
  })

  it('differs for another price, and not for another order of the keys', () => {
    const [one, same] = [at(5), Object.fromEntries(Object.entries(at(5)).reverse()) as ReturnType<typeof at>]
    expect(withoutInstants(answer([one])).text).toBe(withoutInstants(answer([same])).text)
    expect(withoutInstants(answer([one])).text).not.toBe(
      withoutInstants(answer([{ ...one, priceMicroUsdPerHour: 1 }])).text,
    )
  })

  it('refuses instants that are not its own', () => {
    const { text } = withoutInstants(answer([at(5), at(6)]))
    expect(() => withInstants(text, [5])).toThrow('it has no instant 1')
  })
})

it('canonical JSON sorts keys at every level and keeps the order of lists', () => {
  expect(canonicalJson({ b: [{ d: 1, c: 2 }, 1], a: null, e: undefined })).toBe(
    '{"a":null,"b":[{"c":2,"d":1},1]}',
  )
})
