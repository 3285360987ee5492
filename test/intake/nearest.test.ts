import { describe, expect, it } from '@jest/globals'
import { nearest } from '../../intake/nearest'

const FIELDS = ['name', 'run', 'script', 'gpu_memory', 'interruptible', 'env']

describe('nearest', () => {
  it.each([
    ['nmae', 'name'],
    ['nam', 'name'],
    ['names', 'name'],
    ['rum', 'run'],
    ['gpuMemory', 'gpu_memory'],
    ['GPU-MEMORY', 'gpu_memory'],
    ['interuptable', 'interruptible'],
    ['environment', undefined],
    ['x', undefined],
    ['', undefined],
  ])('finds for %s: %s', (word, meant) => {
    expect(nearest(word, FIELDS)).toBe(meant)
  })

  it('compares no text with thousands of letters', () => {
    const path = 'a'.repeat(10_000)
    expect(nearest(path, [`${path}b`])).toBeUndefined()
    expect(nearest('name', [path, 'names'])).toBe('names')
  })

  it('prefers the nearer of two', () => {
    expect(nearest('spot', ['slot', 'spots', 'spot'])).toBe('spot')
  })
})
