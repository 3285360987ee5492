import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { defined } from '../../core/defined'

describe('defined', () => {
  it('keeps every value but undefined, in its order', () => {
    const values = { b: 1, a: undefined, zero: 0, none: null, no: false, empty: '' }
    expect(JSON.stringify(Object.entries(defined(values)))).toBe(
      '[["b",1],["zero",0],["none",null],["no",false],["empty",""]]',
    )
    expect(Object.keys(defined({ a: undefined }))).toEqual([])
    expect(JSON.stringify(defined({ ['__proto__']: 0 }))).toBe('{"__proto__":0}')
  })

  it('has the JSON of its argument', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.option(fc.jsonValue(), { nil: undefined })), (values) => {
        expect(JSON.stringify(defined(values))).toBe(JSON.stringify(values))
      }),
    )
  })

  it('has types for exact optional properties', () => {
    const hint = undefined as string | undefined
    const exact: { message: string; hint?: string } = { message: 'no place', hint }
    // @ts-expect-error -- a value of another type is refused
    const wrong: { hint?: number } = { hint }
    expect([exact, wrong]).toEqual([{ message: 'no place' }, {}])
  })
})
