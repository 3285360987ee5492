import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { microUsd } from '../../core/money/money'
import { formatRange } from '../../core/resources'
import {
  COUNT_RANGE_PATTERN,
  DURATION_PATTERN,
  MONEY_PATTERN,
  parseCountRange,
  parseDeadline,
  parseDuration,
  parseMoney,
  parseSizeGiB,
  parseSizeRange,
  SIZE_PATTERN,
  SIZE_RANGE_PATTERN,
  UnitError,
} from '../../intake/units'

const DAY = 86_400_000

/** What a text is refused with. */
function refusal(read: () => unknown): { message: string; remedy: string } {
  try {
    read()
  } catch (error) {
    if (error instanceof UnitError) return { message: error.message, remedy: error.remedy }
    throw error
  }
  throw new Error('it was read')
}

/** A text of any sort, often close to one that means something. */
const scribble = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.string({ unit: fc.constantFrom(...'0123456789.+-$ dhmsGMTiBbUSD'), maxLength: 10 }),
)

function isRead(read: () => unknown): boolean {
  try {
    read()
    return true
  } catch {
    return false
  }
}

describe('durations', () => {
  it.each([
    ['90s', 90_000],
    ['30m', 1_800_000],
    ['2h', 7_200_000],
    ['1d12h', 129_600_000],
    ['1.5h', 5_400_000],
    ['1d 2h 3m 4s', 93_784_000],
    [' 10 m ', 600_000],
    ['2H', 7_200_000],
    ['0s', 0],
    ['0.5s', 500],
  ])('%s is %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms)
  })

  it('are read as they were put together', () => {
    fc.assert(
      fc.property(fc.nat(400), fc.nat(23), fc.record({ m: fc.nat(59), s: fc.nat(59) }), (d, h, { m, s }) => {
        const text = `${d}d${h}h${m}m${s}s`
        expect(parseDuration(text)).toBe(((d * 24 + h) * 60 + m) * 60_000 + s * 1000)
      }),
    )
  })

  it.each(['', ' ', '90 minutes', '12h1d', '1h1h', '-5m', '1,5h', 'h', '1.h', '5mm', '1e3s', '5 m x'])(
    '%j is refused',
    (text) => {
      expect(refusal(() => parseDuration(text)).message).toBe(`${JSON.stringify(text)} is not a duration`)
    },
  )

  it('asks for the unit of a bare number', () => {
    expect(refusal(() => parseDuration('90')).remedy).toBe('add its unit: 90s, 90m, 90h or 90d')
  })

  it('match the pattern that editors use, and nothing else does', () => {
    fc.assert(
      fc.property(scribble, (text) => {
        fc.pre(text.trim() !== '')
        expect(new RegExp(DURATION_PATTERN).test(text)).toBe(isRead(() => parseDuration(text)))
      }),
      { numRuns: 2000 },
    )
  })
})

describe('sizes', () => {
  it.each([
    ['8GiB', 8],
    ['512MiB', 0.5],
    ['1TiB', 1024],
    ['8GB', 7.451],
    ['1.5 gib', 1.5],
  ])('%s is %d GiB', (text, gib) => {
    expect(parseSizeGiB(text)).toBe(gib)
  })

  it.each(['', '8', '8G', '8Gi', 'GB', '8KB', '-8GB', '8GBs', '8 G B'])('%j is refused', (text) => {
    expect(refusal(() => parseSizeGiB(text)).message).toBe(`${JSON.stringify(text)} is not a size`)
  })

  it('asks for the unit of a bare number', () => {
    expect(refusal(() => parseSizeGiB('8')).remedy).toBe('add its unit: 8GB or 8GiB')
    expect(refusal(() => parseSizeRange('24..80')).remedy).toBe('add its unit: 24..80GB or 24..80GiB')
  })

  it('match the pattern that editors use, and nothing else does', () => {
    fc.assert(
      fc.property(scribble, (text) => {
        expect(new RegExp(SIZE_PATTERN).test(text)).toBe(isRead(() => parseSizeGiB(text)))
      }),
      { numRuns: 2000 },
    )
  })
})

describe('ranges of sizes', () => {
  it.each([
    ['24GB', { min: 22.08 }],
    ['24GB+', { min: 22.08 }],
    ['24GB..', { min: 22.08 }],
    ['24GB..80GB', { min: 22.08, max: 80 }],
    ['24..80GB', { min: 22.08, max: 80 }],
    ['24 GB .. 80 GB', { min: 22.08, max: 80 }],
    ['..8TB', { max: 8000 }],
    ['16GiB..1TiB', { min: 16, max: 1024 }],
    ['512MiB', { min: 0.5 }],
    ['24GiB', { min: 24 }],
    ['16..16GiB', { min: 16, max: 16 }],
  ])('%s is %j', (text, range) => {
    expect(parseSizeRange(text)).toEqual(range)
  })

  /** Memory that drivers report (nvidia-smi memory.total, MiB) for what is printed on the card. */
  it.each([
    [12, 11441, 'K80'],
    [16, 15079, 'T4'],
    [16, 15360, 'T4, newer driver'],
    [16, 16160, 'V100'],
    [24, 22888, 'A10G, as its provider lists it'],
    [24, 23028, 'A10G'],
    [24, 24564, 'RTX 4090'],
    [48, 46068, 'L40S'],
    [80, 81251, 'A100'],
    [80, 81559, 'H100'],
    [80, 81920, 'A100, as its provider lists it'],
    [96, 97887, 'RTX PRO 6000'],
    [141, 143771, 'H200'],
  ])('a card of %d GB that reports %d MiB (%s) is one of %1$d GB', (label, mib) => {
    const { min, max } = parseSizeRange(`${label}GB..${label}GB`)
    expect(mib / 1024).toBeGreaterThanOrEqual(min!)
    expect(mib / 1024).toBeLessThanOrEqual(max!)
  })

  it('tell neighbouring sizes of cards apart', () => {
    const labels = [8, 11, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 141, 180, 268]
    for (const [i, label] of labels.entries()) {
      const { min } = parseSizeRange(`${label}GB`)
      if (i > 0 && labels[i - 1]! / label < 0.92) expect(labels[i - 1]).toBeLessThan(min!)
    }
  })

  it('in GiB are what formatRange writes', () => {
    const gib = fc.integer({ min: 1, max: 4096 })
    fc.assert(
      fc.property(gib, gib, (a, b) => {
        const [min, max] = [Math.min(a, b), Math.max(a, b)]
        for (const range of [{ min }, { max }, { min, max: max + 1 }]) {
          expect(parseSizeRange(formatRange(range, 'GiB'))).toEqual(range)
        }
      }),
    )
  })

  it('say which way round', () => {
    expect(refusal(() => parseSizeRange('80GB..24GB'))).toEqual({
      message: '"80GB..24GB" has its bounds in the wrong order',
      remedy: 'write 24GB..80GB',
    })
  })

  it.each(['', '..', '1GB..2GB..3GB', '24GB-80GB', '>=24GB', '24+GB', '+'])('%j is refused', (text) => {
    expect(isRead(() => parseSizeRange(text))).toBe(false)
  })

  it('match the pattern that editors use, and nothing else does, except bounds in the wrong order', () => {
    const bound = fc.string({ unit: fc.constantFrom(...'0123456789. GMTiB'), maxLength: 5 })
    const range = fc
      .tuple(bound, fc.constantFrom('..', '+', '', ' .. '), bound)
      .map((parts) => parts.join(''))
    fc.assert(
      fc.property(fc.oneof(scribble, range), (text) => {
        const isReadable = isRead(() => parseSizeRange(text))
        const isReversed = !isReadable && /wrong order/.test(refusal(() => parseSizeRange(text)).message)
        expect(new RegExp(SIZE_RANGE_PATTERN).test(text)).toBe(isReadable || isReversed)
      }),
      { numRuns: 5000 },
    )
  })
})

describe('ranges of counts', () => {
  it.each([
    ['4', { min: 4, max: 4 }, { min: 4 }],
    ['16+', { min: 16 }, { min: 16 }],
    ['2..8', { min: 2, max: 8 }, { min: 2, max: 8 }],
    ['..8', { max: 8 }, { max: 8 }],
    ['2..', { min: 2 }, { min: 2 }],
    [' 2 .. 8 ', { min: 2, max: 8 }, { min: 2, max: 8 }],
    ['0', { min: 0, max: 0 }, { min: 0 }],
  ])('%s is %j where a single number is exact, else %j', (text, exact, atLeast) => {
    expect(parseCountRange(text, true)).toEqual(exact)
    expect(parseCountRange(text, false)).toEqual(atLeast)
  })

  it('are what formatRange writes', () => {
    fc.assert(
      fc.property(fc.nat(1000), fc.nat(1000), (a, b) => {
        const [min, max] = [Math.min(a, b), Math.max(a, b)]
        for (const range of [{ min }, { max }, { min, max }]) {
          expect(parseCountRange(formatRange(range), true)).toEqual(range)
        }
      }),
    )
  })

  it.each(['', 'four', '1.5', '-1', '8-16', '1..2..3', '1e3', '99999999999', '4 GPUs'])(
    '%j is refused',
    (text) => {
      expect(refusal(() => parseCountRange(text, true)).message).toContain('is not a')
    },
  )

  it('match the pattern that editors use, and nothing else does, except bounds in the wrong order', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'012.+ '), maxLength: 7 }), (text) => {
        const isReadable = isRead(() => parseCountRange(text, true))
        const isReversed =
          !isReadable && /wrong order/.test(refusal(() => parseCountRange(text, true)).message)
        expect(new RegExp(COUNT_RANGE_PATTERN).test(text)).toBe(isReadable || isReversed)
      }),
      { numRuns: 5000 },
    )
  })
})

describe('money', () => {
  it.each([
    ['$25', 25],
    ['25', 25],
    ['25.50', 25.5],
    ['25 USD', 25],
    ['25usd', 25],
    ['$ 0.01', 0.01],
  ])('%s is %d dollars', (text, dollars) => {
    expect(parseMoney(text)).toBe(microUsd(dollars))
  })

  it.each([
    ['1,000', 'write 1000'],
    ['$12 000.50', 'write $12000.50'],
  ])('%j is refused with the form that is meant', (text, remedy) => {
    expect(refusal(() => parseMoney(text))).toMatchObject({ remedy })
  })

  it.each(['', '€25', '25 EUR', '$', '-5', '25$', '$25 to 30'])('%j is refused', (text) => {
    expect(refusal(() => parseMoney(text))).toEqual({
      message: `${JSON.stringify(text)} is not an amount of US dollars`,
      remedy: 'write $25, 25.50 or "25 USD"',
    })
  })

  it('matches the pattern that editors use, and nothing else does', () => {
    fc.assert(
      fc.property(scribble, (text) => {
        expect(new RegExp(MONEY_PATTERN).test(text)).toBe(isRead(() => parseMoney(text)))
      }),
      { numRuns: 2000 },
    )
  })
})

describe('deadlines', () => {
  it.each([
    ['2027-01-31T18:00:00Z', '2027-01-31T18:00:00.000Z'],
    ['2027-01-31T18:00Z', '2027-01-31T18:00:00.000Z'],
    ['2027-01-31 18:00:00.25z', '2027-01-31T18:00:00.250Z'],
    ['2027-01-31T18:00:00+01:00', '2027-01-31T17:00:00.000Z'],
    ['2027-01-31T18:00-0830', '2027-02-01T02:30:00.000Z'],
    ['2028-02-29T00:00:00Z', '2028-02-29T00:00:00.000Z'],
  ])('%s is %s', (text, instant) => {
    expect(parseDeadline(text)).toEqual({ atMs: Date.parse(instant) })
  })

  it('agree with the calendar of the language', () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date('2000-01-01'), max: new Date('2100-01-01'), noInvalidDate: true }),
        (date) => {
          expect(parseDeadline(date.toISOString())).toEqual({ atMs: date.getTime() })
        },
      ),
    )
  })

  it('may be durations', () => {
    expect(parseDeadline('36h')).toEqual({ afterMs: 1.5 * DAY })
  })

  it('need a zone', () => {
    expect(refusal(() => parseDeadline('2027-01-31T18:00'))).toEqual({
      message: '"2027-01-31T18:00" has no time zone',
      remedy: 'write 2027-01-31T18:00Z for UTC, or add an offset such as +01:00',
    })
  })

  it.each([
    '2027-02-29T00:00:00Z',
    '2027-13-01T00:00:00Z',
    '2027-01-32T00:00:00Z',
    '2027-01-00T00:00:00Z',
    '2027-01-01T24:00:00Z',
    '2027-01-01T00:60:00Z',
    '2027-01-01T00:00:00+15:00',
  ])('%s is not in the calendar', (text) => {
    expect(refusal(() => parseDeadline(text)).message).toBe(`"${text}" is not in the calendar`)
  })

  it.each(['2027-01-31', '2027-01-31T18:00:00 Europe/Berlin', 'tomorrow', '31.01.2027', '', '18:00'])(
    '%j is refused',
    (text) => {
      expect(refusal(() => parseDeadline(text)).remedy).toContain('2027-01-31T18:00:00Z')
    },
  )
})
