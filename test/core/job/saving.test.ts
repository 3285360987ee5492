import { describe, expect, it } from '@jest/globals'
import { lossDespiteNotice, savingOf } from '../../../core/job/saving'
import { MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import { SPEC } from '../../client/world'

const GB = 1e9
const sized = (sizeBytes: number) => ({ ...SPEC, checkpoint: { sizeBytes } })

describe('what saving a checkpoint takes', () => {
  it('counts what the program takes to write it, beyond what a notice leaves for that', () => {
    const saving = savingOf(SPEC, { totalBytes: GB, uploadMs: 60 * SECOND_MS, saveMs: 80 * SECOND_MS })
    expect(saving).toMatchObject({ durationMs: MINUTE_MS, writeMs: MINUTE_MS })
    expect(lossDespiteNotice(saving!, undefined)).toMatch(
      /takes 1m at .*, after 1m 20s in which it is written, more/,
    )
    expect(savingOf(SPEC, { totalBytes: GB, saveMs: 10 * SECOND_MS })).toMatchObject({ writeMs: 0 })
  })

  it('is not known before there was one, unless the spec says how big one is', () => {
    expect(savingOf(SPEC, undefined)).toBeUndefined()
    expect(savingOf(sized(100 * 2 ** 20), undefined)).toMatchObject({
      durationMs: SECOND_MS,
      isMeasured: false,
    })
  })

  it('is what the last one took, and as much more as the spec says that they are bigger', () => {
    const before = { totalBytes: 2 * GB, uploadMs: 20 * SECOND_MS }
    expect(savingOf(SPEC, before)).toEqual({
      sizeBytes: 2 * GB,
      restoredBytes: 2 * GB,
      durationMs: 20 * SECOND_MS,
      writeMs: 0,
      isMeasured: true,
    })
    expect(savingOf(sized(6 * GB), before)).toMatchObject({ durationMs: MINUTE_MS, isMeasured: true })
  })

  it('is not judged by the rate of a small one, nor by one whose runner told none', () => {
    expect(savingOf(sized(GB), { totalBytes: 100, uploadMs: 50 })).toMatchObject({ isMeasured: false })
    expect(savingOf(SPEC, { totalBytes: GB })).toMatchObject({ sizeBytes: GB, isMeasured: false })
  })

  it('is judged by the rate of a small one of the same size, and of one of 64 MiB', () => {
    const isMeasured = (totalBytes: number, sizeBytes: number) =>
      savingOf(sized(sizeBytes), { totalBytes, uploadMs: 50 })!.isMeasured
    expect(isMeasured(100, 100)).toBe(true)
    expect([2 ** 26, 2 ** 26 - 1].map((bytes) => isMeasured(bytes, GB))).toEqual([true, false])
  })

  it('is worth a word exactly where it does not fit into 90 s', () => {
    const saving = { sizeBytes: 30 * GB, durationMs: 90 * SECOND_MS, writeMs: 0, isMeasured: true }
    expect(lossDespiteNotice(saving, undefined)).toBeUndefined()
    expect(lossDespiteNotice({ ...saving, durationMs: 5 * MINUTE_MS }, 10 * MINUTE_MS)).toBe(
      'saving a checkpoint of 30 GB takes 5m at a measured 100 MB/s, more than the 1m 30s that a notice leaves: up to 10m of work is done again',
    )
    expect(lossDespiteNotice({ ...saving, durationMs: 5 * MINUTE_MS }, undefined)).toMatch(
      /all work since the last one is done again$/,
    )
  })
})
