import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { WORK_FAMILIES } from '../../core/speed'

const ROOT = join(__dirname, '..', '..')

describe('the generator of speeds', () => {
  let shares: Map<string, [held: number, all: number]>
  beforeAll(() => {
    const args = [join(ROOT, 'tools', 'gen-speeds.mjs'), '--check']
    const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    // The file in the tree is what it makes.
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
    const lines = [...stdout.matchAll(/^(.+): (\d+) of (\d+) left out/gm)]
    shares = new Map(lines.map(([, name, held, all]) => [name!, [Number(held), Number(all)]]))
  })

  it.each([...WORK_FAMILIES, 'pooled', 'types without measurements'])(
    'makes ranges of %s that hold measurements they were not made from as often as they say',
    (name) => {
      const [held, all] = shares.get(name)!
      expect(all).toBeGreaterThanOrEqual(20)
      expect(held / all).toBeGreaterThanOrEqual(0.85)
      expect(held / all).toBeLessThanOrEqual(0.95)
    },
  )

  it('judges by hundreds of measurements', () => {
    expect(shares.get('pooled')![1]).toBeGreaterThan(400)
  })
})
