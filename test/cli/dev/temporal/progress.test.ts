import { describe, expect, it } from '@jest/globals'
import { progressOn } from '../../../../cli/dev/temporal/progress'

function written(output: { isTTY?: boolean; columns?: number }, nowMs: { value: number }) {
  let text = ''
  const progress = progressOn({ ...output, write: (more: string) => (text += more) }, () => nowMs.value)
  return { progress, text: () => text }
}

describe('progressOn', () => {
  it('rewrites one line of at most the width of a terminal, and keeps notes', () => {
    const { progress, text } = written({ isTTY: true, columns: 11 }, { value: 0 })
    progress.update('1 of 2 and much more')
    progress.update('2 of 2')
    progress.note('done')
    progress.note('next')
    expect(text()).toBe('\r\u001b[K1 of 2 and\r\u001b[K2 of 2\r\u001b[Kdone\nnext\n')
  })

  it('writes plain lines elsewhere: every note, and an update now and then', () => {
    const now = { value: 0 }
    const { progress, text } = written({}, now)
    progress.note('begun')
    for (; now.value < 40_000; now.value += 1_000) progress.update(`after ${now.value} ms`)
    expect(text()).toBe('begun\nafter 15000 ms\nafter 30000 ms\n')
  })
})
