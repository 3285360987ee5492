/** The ten examples of the Python package `truffle`, in one run as its file says, and its README. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { TruffleAccount } from '../cli/truffle/account'
import { blocksOf } from '../docs/markdown'
import { Bridge } from './bridge'

jest.setTimeout(120_000)

const FOLDER = join(__dirname, '../../bindings/python/truffle')
let account: TruffleAccount
let bridge: Bridge

beforeAll(async () => {
  account = await TruffleAccount.open({
    reservations: [
      { kind: 'on-demand', type: 'g6.xlarge', zone: 'us-west-2a', count: 64 },
      { kind: 'capacity-block', type: 'p5.48xlarge', zone: 'us-east-1a', count: 32, ends: '168h' },
    ],
    blockOfferings: [{ type: 'p5.48xlarge', zone: 'us-east-1a', count: 64, usdPerInstanceHour: 31.5 }],
  })
  bridge = await Bridge.open(({ args }) => account.run(...args))
})
afterAll(async () => {
  await bridge.close()
  await account.close()
})

/** What each example prints on this account. */
const PRINTS: readonly RegExp[] = [
  /p5\.48xlarge in us-east-1: 8x H100, \$\d+\.\d\d\/h[^]*us-east-1: \S+, \S+/,
  /g[56]\.\w+ in \S+: \$\d\.\d{3}\/h, saves \d+%\n {3}this week/,
  /cb-\w+: 32x p5\.48xlarge, active\n {3}\S+Z to \S+Z, usable until \S+Z\n {3}32 free for 16[67] hours/,
  /cr-\w+: 64 of 64 g6\.xlarge free\nunused ones cost \$\d+\.\d\d\/h\n.*billed at the on-demand price, used or not/,
  /16x p5\.48xlarge in us-east-1a from \S+Z\n\$[\d,]+ at once, \$31\.50 per[^]*purchase-capacity-block[^]*not covered: /,
  /yes: the run can begin\ncapacity-block in us-east-1a: room for 32, expected cost \$0/,
  /Distributed training: capacity-block[^]*: odcr\n[^]*"pay only when running" is wrong/,
  /us-east-1 .* vCPUs used\n[^]*request-service-quota-increase/,
  /(?:later|elsewhere): [^]*p5\.48xlarge/,
  /reservations with room: 1, blocks for sale: [1-9]\d*\nstart in us-west-2a/,
]

describe('the examples of the Python package', () => {
  let printed: string[]
  beforeAll(async () => {
    const all = await bridge.python([join(FOLDER, 'examples/usage.py')])
    printed = all.split(/^\d+\. /m).slice(1)
  })

  it('are ten', () => {
    expect(printed).toHaveLength(PRINTS.length)
  })

  it.each(PRINTS.map((pattern, index) => [index + 1, pattern] as const))('print: %i', (number, pattern) => {
    expect(printed[number - 1]).toMatch(pattern)
  })
})

describe('the README of the Python package', () => {
  it('has examples that run', async () => {
    const blocks = blocksOf(readFileSync(join(FOLDER, 'README.md'), 'utf8'), 'python')
    expect(blocks.length).toBeGreaterThan(2)
    // As in a notebook: later blocks use names of earlier ones.
    const [ran] = await bridge.snippets([{ name: 'README', code: blocks.map(({ text }) => text).join('\n') }])
    expect(ran!.error).toBeNull()
    expect(ran!.stdout).not.toBe('')
  })
})
