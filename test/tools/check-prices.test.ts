import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { testFolder } from '../support/folders'

const ROOT = join(__dirname, '..', '..')
const REFERENCE = join(__dirname, 'price-reference')

const check = (...args: string[]) => {
  const tool = join(ROOT, 'tools', 'check-prices.mjs')
  const { stdout, stderr, status } = spawnSync(process.execPath, [tool, ...args], { encoding: 'utf8' })
  return { lines: stdout.trimEnd().split('\n'), stderr, status }
}

describe('the check of prices against a reference', () => {
  const { lines, stderr, status } = check(REFERENCE)

  it('lists each price that differs by more than a tenth once, with the older side', () => {
    expect(stderr).toBe('')
    expect(lines).toHaveLength(5)
    const day = String.raw`on \d{4}-\d{2}-\d{2}`
    const expected = [
      String.raw`^ec2 p5\.48xlarge: \$55\.04 ${day}, \$98\.32 in v7@001367d2 \(-44 %\): the reference is older$`,
      String.raw`^ec2 g6\.xlarge: \$0\.8048 ${day}, \$0\.7 in v9@2099-01-01 \(\+15 %\): ours is older$`,
      String.raw`^ec2 g4dn\.xlarge: \$0\.526 ${day}, \$0\.6 in v9@00000000 \(-12 %\): unknown which is older$`,
      String.raw`^lambda gpu_1x_h100_sxm5: \$4\.29 ${day}, \$3\.29 in lambda v7@11580132 \(\+30 %\): the reference is older$`,
    ]
    expected.forEach((line, at) => expect(lines[at]).toMatch(new RegExp(line)))
  })

  it('counts what was compared, and fails if one of our prices is the older one', () => {
    // The H100 of Modal and the g5.xlarge differ by less.
    expect(lines.at(-1)).toBe('4 of 6 prices differ by more than 10 %; ours is older in 1.')
    expect(status).toBe(1)
  })

  it('asks for a folder, and says what cannot be read', () => {
    expect(check()).toMatchObject({ status: 2, stderr: expect.stringContaining('Name the folder') })
    const broken = testFolder('prices')
    writeFileSync(join(broken, 'aws-gpu-us-regions.csv'), 'a,b\n1\n')
    const { status: code, stderr: told } = check(broken)
    expect(code).toBe(2)
    expect(told).toContain('aws-gpu-us-regions.csv cannot be read: line 2 has 1 columns instead of 2.')
  })
})
